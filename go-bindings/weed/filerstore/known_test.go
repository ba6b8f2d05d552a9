package filerstore

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/seaweedfs/seaweedfs/weed/pb/filer_pb"
	"github.com/seaweedfs/seaweedfs/weed/util"
	"kelp/go-bindings/weed/internal/weedtest"
)

func TestWhoReadsOnDoesNotAskTheFilerAgain(t *testing.T) {
	o := open(t)
	content := random(9 << 20)
	put(t, o, "journal/1/0000000001/0", content)
	get(t, o, "journal/1/0000000001/0", 40, 10)
	// Only the entry goes: what is left can be read by whoever knows where it is.
	path, _ := o.path("journal/1/0000000001/0")
	directory, name := path.DirAndName()
	err := o.filers.call(t.Context(), func(client filer_pb.SeaweedFilerClient) error {
		_, err := client.DeleteEntry(t.Context(), &filer_pb.DeleteEntryRequest{Directory: directory, Name: name})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := get(t, o, "journal/1/0000000001/0", 8<<20-5, 10); !bytes.Equal(got, content[8<<20-5:8<<20+5]) {
		t.Error("other bytes came back")
	}
	for _, length := range []int64{40, -1} {
		if _, found, err := o.Get(t.Context(), "journal/1/0000000001/0", 0, length, nil); found || err != nil {
			t.Errorf("the beginning: found %t, error %v", found, err)
		}
	}
}

func TestAnObjectThatAnotherProcessDeletedIsMissingAsSoonAsItsBytesAreGone(t *testing.T) {
	o := open(t)
	other := open(t)
	key := "journal/1/0000000001/0"
	put(t, o, key, random(1<<20))
	get(t, o, key, 40, 1000)
	if err := other.Delete(t.Context(), []string{key}); err != nil {
		t.Fatal(err)
	}
	weedtest.Await(t, func() (bool, bool) {
		_, found, err := o.Get(t.Context(), key, 40, 1000, nil)
		if err != nil {
			t.Fatal(err)
		}
		return found, !found
	})
	// The fence of a slow opener, where a commit was.
	put(t, other, key, []byte("a fence"))
	if got := get(t, o, key, 2, 1000); string(got) != "fence" {
		t.Errorf("the new object is %q", got)
	}
}

func TestWhatIsRememberedIsBounded(t *testing.T) {
	var k known
	entry := &filer_pb.Entry{Chunks: make([]*filer_pb.FileChunk, maxKnownChunks/4)}
	for i := range 20 {
		path := util.FullPath(fmt.Sprintf("/%d", i))
		k.remember(path, entry, lookup{})
		k.remember(path, entry, lookup{})
		if _, found := k.of(path); !found || len(k.objects) > 4 || k.chunks != len(k.objects)*len(entry.Chunks) {
			t.Fatalf("found %t, %d objects with %d chunks", found, len(k.objects), k.chunks)
		}
		if i == 10 {
			k.forget(path)
		}
	}
	k.remember("/inline", &filer_pb.Entry{Content: []byte("x")}, lookup{})
	k.remember("/token", entry, lookup{tokens: map[string]string{"1,2": "token"}})
	for _, path := range []string{"/inline", "/token"} {
		if _, found := k.objects[util.FullPath(path)]; found {
			t.Errorf("%s is remembered", path)
		}
	}
}
