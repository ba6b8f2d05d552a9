package filerstore

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seaweedfs/seaweedfs/weed/pb/filer_pb"
)

func random(size int) []byte {
	content := make([]byte, size)
	rand.NewChaCha8([32]byte{byte(size)}).Read(content)
	return content
}

// split makes parts of uneven length, some of them empty.
func split(content []byte) (parts [][]byte) {
	for len(content) > 0 {
		n := rand.IntN(len(content) + 1)
		parts = append(parts, content[:n])
		content = content[n:]
	}
	return parts
}

func put(t testing.TB, o *Objects, key string, content []byte) {
	t.Helper()
	created, err := o.PutNew(t.Context(), key, [][]byte{content})
	if err != nil || !created {
		t.Fatalf("put %s: created %t, error %v", key, created, err)
	}
}

func get(t testing.TB, o *Objects, key string, offset, length int64) []byte {
	t.Helper()
	data, found, err := o.Get(t.Context(), key, offset, length, nil)
	if err != nil || !found {
		t.Fatalf("get %s: found %t, error %v", key, found, err)
	}
	return data
}

func list(t testing.TB, o *Objects, prefix, after string, limit int) []string {
	t.Helper()
	keys, err := o.List(t.Context(), prefix, after, limit)
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

func TestObjectsOfAllSizesComeBackAsTheyWerePut(t *testing.T) {
	o := open(t)
	for _, size := range []int{0, 1, inlineBelow - 1, inlineBelow, inlineBelow + 1, 1 << 20, 8 << 20, 8<<20 + 1, 9 << 20} {
		key := fmt.Sprintf("segment/1/%d", size)
		content := random(size)
		if created, err := o.PutNew(t.Context(), key, split(content)); err != nil || !created {
			t.Fatalf("size %d: created %t, error %v", size, created, err)
		}
		if !bytes.Equal(get(t, o, key, 0, -1), content) {
			t.Errorf("size %d: other bytes came back", size)
		}
	}
}

// A volume server compresses what looks like text, and serves ranges of that differently.
func TestTextIsKeptAsItIs(t *testing.T) {
	o := open(t)
	content := []byte(strings.Repeat("all work and no play\n", 10_000))
	put(t, o, "segment/1/text", content)
	entry, _, err := o.find(t.Context(), "/kelp-TestTextIsKeptAsItIs/segment/1/text")
	if err != nil {
		t.Fatal(err)
	}
	if stored := entry.Chunks[0]; stored.IsCompressed || int(stored.Size) != len(content) {
		t.Errorf("the chunk is %v", stored)
	}
	if !bytes.Equal(get(t, o, "segment/1/text", 21, 42), content[21:63]) {
		t.Error("a range has other bytes")
	}
}

func TestRangesAreCutAtTheEnd(t *testing.T) {
	o := open(t)
	for _, size := range []int{0, 100, 2 * hastyAtMost, 17 << 20} {
		key := fmt.Sprintf("segment/1/%d", size)
		content := random(size)
		put(t, o, key, content)
		for _, r := range [][2]int{{0, 0}, {0, 1}, {0, size}, {0, size + 1}, {size, 1}, {size, -1}, {size + 9, 5}, {size / 2, -1}, {size / 2, 10},
			{8<<20 - 1, 2}, {8 << 20, 1}, {8<<20 - 3, 8<<20 + 6}} {
			from := min(r[0], size)
			to := min(from+r[1], size)
			if r[1] < 0 {
				to = size
			}
			if got := get(t, o, key, int64(r[0]), int64(r[1])); !bytes.Equal(got, content[from:to]) {
				t.Errorf("size %d, %d bytes from %d: got %d bytes that are not those", size, r[1], r[0], len(got))
			}
		}
	}
}

func TestGetReadsIntoTheMemoryItIsGiven(t *testing.T) {
	o := open(t)
	for _, size := range []int{100, 2 * hastyAtMost, 9 << 20} {
		key := fmt.Sprintf("segment/1/%d", size)
		content := random(size)
		put(t, o, key, content)
		var given []byte
		data, _, err := o.Get(t.Context(), key, 7, -1, func(n int) []byte {
			given = make([]byte, n)
			return given
		})
		if err != nil || len(data) != size-7 || &data[0] != &given[0] || !bytes.Equal(given, content[7:]) {
			t.Errorf("size %d: %d bytes, error %v", size, len(data), err)
		}
	}
}

// A volume server reads a whole chunk to answer for a range of it.
func TestALargePartIsReadWithAllOfItsChunk(t *testing.T) {
	var ranges []string
	o := open(t, func(options *Options) {
		options.HTTP = doFunc(func(request *http.Request) (*http.Response, error) {
			if request.Method == http.MethodGet {
				ranges = append(ranges, request.Header.Get("Range"))
			}
			return http.DefaultClient.Do(request)
		})
	})
	const size = 4 << 20
	content := random(size)
	put(t, o, "segment/1/x", content)
	for _, part := range []struct {
		offset, length int64
		asked          string
	}{
		{1, size / 4, "bytes=1-1048576"},
		{size - 100, 100, "bytes=4194204-4194303"},
		{0, size / 2, ""},
		{100, size / 2, ""},
		{size / 3, size - size/3, ""},
		{0, size, ""},
	} {
		ranges = nil
		if !bytes.Equal(get(t, o, "segment/1/x", part.offset, part.length), content[part.offset:part.offset+part.length]) {
			t.Errorf("%+v: other bytes came back", part)
		}
		if !slices.Equal(ranges, []string{part.asked}) {
			t.Errorf("%+v: the volume server was asked for %q", part, ranges)
		}
	}
}

func TestAMissingObjectIsNotFound(t *testing.T) {
	o := open(t)
	put(t, o, "journal/1/0000000001/x", nil)
	for _, key := range []string{"nothing", "journal/1/0000000001/y", "journal/1/0000000001", "journal"} {
		if _, found, err := o.Get(t.Context(), key, 0, -1, nil); found || err != nil {
			t.Errorf("%s: found %t, error %v", key, found, err)
		}
	}
}

func TestOfManyWhoPutAKeyOneWins(t *testing.T) {
	o := open(t)
	for _, size := range []int{100, 2 * hastyAtMost} {
		for round := range 20 {
			key := fmt.Sprintf("journal/1/%010d/%d", size, round)
			contents := make([][]byte, 8)
			var winners []int
			var mutex sync.Mutex
			var writers sync.WaitGroup
			for writer := range contents {
				contents[writer] = bytes.Repeat([]byte{byte(writer)}, size)
				writers.Go(func() {
					created, err := o.PutNew(t.Context(), key, [][]byte{contents[writer]})
					if err != nil {
						t.Error(err)
					}
					if created {
						mutex.Lock()
						winners = append(winners, writer)
						mutex.Unlock()
					}
				})
			}
			writers.Wait()
			if len(winners) != 1 || !bytes.Equal(get(t, o, key, 0, -1), contents[winners[0]]) {
				t.Fatalf("%s: winners %v, and the object is not of the only one", key, winners)
			}
		}
	}
}

// Otherwise an object would lose its bytes when another put of its key comes late.
func TestALostPutLeavesTheWinnersChunks(t *testing.T) {
	o := open(t)
	content := random(100_000)
	put(t, o, "segment/1/one", content)
	for range 5 {
		if created, err := o.PutNew(t.Context(), "segment/1/one", [][]byte{random(9 << 20)}); created || err != nil {
			t.Fatalf("created %t, error %v", created, err)
		}
	}
	o.background.Wait()
	if !bytes.Equal(get(t, o, "segment/1/one", 0, -1), content) {
		t.Error("the object changed")
	}
}

func TestALostPutDeletesItsChunks(t *testing.T) {
	o := open(t)
	put(t, o, "segment/1/one", nil)
	path, _ := o.path("segment/1/one")
	uploads, err := o.upload(t.Context(), path, [][]byte{random(9 << 20)}, 9<<20, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	entry := &filer_pb.Entry{Chunks: chunksOf(uploads)}
	where := located(t, o, uploads)
	if err := o.read(t.Context(), entry, where, 0, make([]byte, 9<<20)); err != nil {
		t.Fatalf("an uploaded chunk cannot be read: %v", err)
	}
	if created, err := o.create(t.Context(), path, 9<<20, nil, uploads); created || err != nil {
		t.Fatalf("created %t, error %v", created, err)
	}
	o.background.Wait()
	for _, chunk := range entry.Chunks {
		err := o.readPiece(t.Context(), piece{chunk, 0, make([]byte, chunk.Size)}, where)
		if err == nil || !strings.Contains(err.Error(), "404") {
			t.Errorf("chunk %s: %v, want 404", chunk.FileId, err)
		}
	}
}

func located(t *testing.T, o *Objects, uploads []upload) lookup {
	t.Helper()
	where := lookup{locations: map[string]*filer_pb.Locations{}}
	for _, upload := range uploads {
		where.locations[upload.id.batch.first.VolumeId.String()] = &filer_pb.Locations{Locations: []*filer_pb.Location{{Url: upload.id.batch.url}}}
	}
	return where
}

func TestListIsInTheOrderOfKeys(t *testing.T) {
	o := open(t)
	keys := []string{
		"a-b", "a-b-/x", "a-c/1", "a-c/2", "a.txt", "a/1-/x", "a/1-2/x", "a/1/x", "a/10", "a/2/deep/er", "a0", "ab",
		"journal/1/0000000001/00000000000000000000", "journal/1/0000000001/00000000000000000001", "journal/1/0000000002/00000000000000000000",
		"journal/10/0000000001/00000000000000000000", "segment/1/0000000001-1", "segment/1/0000000001-10", "segment/1/0000000001-2",
	}
	shuffled := slices.Clone(keys)
	rand.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	for _, key := range shuffled {
		put(t, o, key, []byte(key))
	}
	if !slices.IsSorted(keys) {
		t.Fatal("the test's keys are not in order")
	}
	prefixes := []string{"", "a", "a-", "a/", "a/1", "a-b", "journal/", "journal/1", "journal/1/", "journal/1/0000000001/", "seg", "segment/1/0000000001-1", "none", "none/x/"}
	afters := append([]string{"", "0", "a", "a/", "a/1/", "journal/1/0000000001", "journal/1/0000000001/5", "journal/2", "zzz"}, keys...)
	for _, prefix := range prefixes {
		for _, after := range afters {
			for _, limit := range []int{1, 3, 1000} {
				var want []string
				for _, key := range keys {
					if strings.HasPrefix(key, prefix) && key > after && len(want) < limit {
						want = append(want, key)
					}
				}
				if got := list(t, o, prefix, after, limit); !slices.Equal(got, want) {
					t.Errorf("list %q after %q limit %d:\n got %q\nwant %q", prefix, after, limit, got, want)
				}
			}
		}
	}
}

func TestPagesOfAListGiveEveryKeyOnce(t *testing.T) {
	o := open(t)
	var keys []string
	for epoch := range 3 {
		for seq := range 50 {
			keys = append(keys, fmt.Sprintf("journal/1/%010d/%020d", epoch, seq))
		}
	}
	for _, key := range keys {
		put(t, o, key, nil)
	}
	for _, limit := range []int{1, 7, 49, 50, 51, 150, 151} {
		var got []string
		for {
			after := ""
			if len(got) > 0 {
				after = got[len(got)-1]
			}
			page := list(t, o, "journal/1/", after, limit)
			got = append(got, page...)
			if len(page) < limit {
				break
			}
		}
		if !slices.Equal(got, keys) {
			t.Errorf("pages of %d give %d keys", limit, len(got))
		}
	}
}

// A directory with more entries than one request asks for.
func TestALongListHasNoGap(t *testing.T) {
	o := open(t)
	var keys []string
	for seq := range 2*listPage + 10 {
		keys = append(keys, fmt.Sprintf("journal/1/0000000001/%020d", seq))
	}
	if err := inParallel(len(keys), func(i int) error {
		_, err := o.PutNew(t.Context(), keys[i], nil)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if got := list(t, o, "journal/1/", "", 10_000); !slices.Equal(got, keys) {
		t.Errorf("%d of %d keys", len(got), len(keys))
	}
}

func TestAListShowsEveryKeyThatWasAnswered(t *testing.T) {
	o := open(t)
	var answered atomic.Int64
	answered.Store(-1)
	var writers sync.WaitGroup
	writers.Go(func() {
		for seq := range int64(300) {
			// Each in a directory of its own: they are made after the entry.
			if _, err := o.PutNew(t.Context(), fmt.Sprintf("journal/1/%010d/x", seq), nil); err != nil {
				t.Error(err)
				return
			}
			answered.Store(seq)
		}
	})
	for answered.Load() < 299 && !t.Failed() {
		least := answered.Load()
		if got := list(t, o, "journal/1/", "", 1000); int64(len(got)) < least+1 {
			t.Fatalf("a list shows %d keys of %d", len(got), least+1)
		}
	}
	writers.Wait()
}

// A filer that dies between an entry and its directories leaves an entry that no list shows.
func TestAKeyThatExistsIsListedOnceThatWasAnswered(t *testing.T) {
	o := open(t)
	path, _ := o.path("journal/1/0000000001/x")
	directory, name := path.DirAndName()
	client, err := o.filers.client(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	request := &filer_pb.CreateEntryRequest{Directory: directory, SkipCheckParentDirectory: true,
		Entry: &filer_pb.Entry{Name: name, Attributes: &filer_pb.FuseAttributes{FileMode: 0o660}}}
	if response, err := client.CreateEntry(t.Context(), request); err != nil || response.Error != "" {
		t.Fatal(response, err)
	}
	if got := list(t, o, "", "", 10); len(got) != 0 {
		t.Fatalf("the filer made the directories: %v", got)
	}
	if created, err := o.PutNew(t.Context(), "journal/1/0000000001/x", nil); created || err != nil {
		t.Fatalf("created %t, error %v", created, err)
	}
	if got := list(t, o, "", "", 10); !slices.Equal(got, []string{"journal/1/0000000001/x"}) {
		t.Errorf("listed are %v", got)
	}
}

func TestDeletedObjectsAreGone(t *testing.T) {
	o := open(t)
	var keys []string
	for i, size := range []int{0, 100, 2 * hastyAtMost, 9 << 20} {
		keys = append(keys, fmt.Sprintf("journal/1/0000000001/%020d", i))
		put(t, o, keys[i], random(size))
	}
	put(t, o, "journal/1/0000000001/9", nil)
	if err := o.Delete(t.Context(), append(keys, "journal/1/7/never", "never")); err != nil {
		t.Fatal(err)
	}
	for _, key := range keys {
		if _, found, err := o.Get(t.Context(), key, 0, -1, nil); found || err != nil {
			t.Errorf("%s: found %t, error %v", key, found, err)
		}
	}
	if got := list(t, o, "", "", 10); !slices.Equal(got, []string{"journal/1/0000000001/9"}) {
		t.Errorf("listed are %v", got)
	}
	put(t, o, keys[0], []byte("again"))
}

func TestADeletionThatFailsKeepsNoOther(t *testing.T) {
	o := open(t)
	var keys []string
	for i := range 3 * deleteBatch {
		keys = append(keys, fmt.Sprintf("journal/1/0000000001/%020d", i))
		put(t, o, keys[i], nil)
	}
	put(t, o, "journal/1/0000000002/0", nil)
	// A directory that is not empty, between the keys.
	err := o.Delete(t.Context(), slices.Insert(slices.Clone(keys), deleteBatch+7, "journal/1/0000000002"))
	if err == nil || !strings.Contains(err.Error(), "journal/1/0000000002") {
		t.Errorf("the error is %v", err)
	}
	if got := list(t, o, "", "", 1000); !slices.Equal(got, []string{"journal/1/0000000002/0"}) {
		t.Errorf("listed are %v", got)
	}
}

func TestKeysThatAreNoPathAreRefused(t *testing.T) {
	o := open(t)
	for _, key := range []string{"", "/", "/a", "a/", "a//b", "a/../b", ".", "..", "a/.", "a\x00", "\xff", strings.Repeat("x", 256)} {
		if created, err := o.PutNew(t.Context(), key, nil); created || err == nil {
			t.Errorf("put %q: created %t", key, created)
		}
		if _, found, err := o.Get(t.Context(), key, 0, -1, nil); found || err == nil {
			t.Errorf("get %q: found %t", key, found)
		}
		if err := o.Delete(t.Context(), []string{key}); err == nil {
			t.Errorf("%q was deleted", key)
		}
	}
	put(t, o, "a/b", nil)
	if created, err := o.PutNew(t.Context(), "a", nil); created || err == nil {
		t.Errorf("a key that is a directory: created %t", created)
	}
}

func TestTheJournalHasACollectionOfItsOwn(t *testing.T) {
	o := open(t)
	for key, want := range map[string]string{"journal/1/1/1": "kelp-journal", "segment/1/1": "kelp", "journalist": "kelp"} {
		path, _ := o.path(key)
		if got := o.collection(path); got != want {
			t.Errorf("%s goes to %s, want %s", key, got, want)
		}
	}
}
