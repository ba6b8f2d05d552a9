package filerstore

import (
	"sync"

	"github.com/seaweedfs/seaweedfs/weed/pb/filer_pb"
	"github.com/seaweedfs/seaweedfs/weed/util"
)

// How many chunks the remembered objects have together: some 2 MB.
const maxKnownChunks = 4096

// known remembers what the filer said of objects whose ranges are read, as a reader takes one range after
// the other. What an entry says never changes, and its file ids are given to nobody else: a chunk that went
// with its object is not found, and the filer is asked again. Until the volume server has deleted it, an
// object that another process deleted can still be read. That is as if the delete came later, which it may.
type known struct {
	mutex   sync.Mutex
	objects map[util.FullPath]knownObject
	chunks  int
}

type knownObject struct {
	entry *filer_pb.Entry
	where lookup
}

func (k *known) of(path util.FullPath) (knownObject, bool) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	object, found := k.objects[path]
	return object, found
}

// remember takes only objects with chunks, and no tokens: those end.
func (k *known) remember(path util.FullPath, entry *filer_pb.Entry, where lookup) {
	if len(entry.Chunks) == 0 || len(where.tokens) > 0 {
		return
	}
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if _, found := k.objects[path]; found {
		return
	}
	if k.chunks += len(entry.Chunks); k.objects == nil || k.chunks > maxKnownChunks {
		k.objects, k.chunks = map[util.FullPath]knownObject{}, len(entry.Chunks)
	}
	k.objects[path] = knownObject{entry, where}
}

func (k *known) forget(path util.FullPath) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if object, found := k.objects[path]; found {
		delete(k.objects, path)
		k.chunks -= len(object.entry.Chunks)
	}
}
