package filerstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/seaweedfs/seaweedfs/weed/pb/filer_pb"
	"github.com/seaweedfs/seaweedfs/weed/security"
	"github.com/seaweedfs/seaweedfs/weed/storage/needle"
	"github.com/seaweedfs/seaweedfs/weed/util"
)

const (
	// One assignment costs as much as the upload of a small chunk, so ids come in batches: this
	// many ids, or as many as are good for these bytes. The master counts them as written.
	batchIDs   = 64
	batchBytes = 64 << 20

	// What the master knows about a volume grows old.
	batchAge = 30 * time.Second

	// A token that ends this soon may be too late when it arrives.
	tokenMargin = 2 * time.Second

	// Batches are kept for this many directories. The journal needs one.
	maxPools = 64
)

// fileID is where one chunk goes.
type fileID struct {
	batch *batch
	name  string // What the entry says.
	// What the volume server is told: id_N instead of the id N behind it, because the batch's
	// token is for its first id.
	uploadName string
}

// batch is a run of file ids on one volume.
type batch struct {
	first   *needle.FileId
	taken   int
	count   int
	url     string
	auth    string
	fsync   bool
	expires time.Time
	refused atomic.Bool // One of the ids was not taken by the volume.
}

// fileIDs hands out file ids that were assigned ahead. The filer's rule for a path decides on
// replication and fsync, so each directory has ids of its own.
type fileIDs struct {
	filers *filers
	mutex  sync.Mutex
	pools  map[string]*pool
}

type pool struct {
	// Holds the lock. A channel, as who waits for an assignment may give up.
	turn  chan struct{}
	batch *batch
}

func newFileIDs(filers *filers) *fileIDs {
	return &fileIDs{filers: filers, pools: map[string]*pool{}}
}

// take returns an id for a chunk of an object at path.
func (f *fileIDs) take(ctx context.Context, path util.FullPath, collection string, size int) (fileID, error) {
	directory, _ := path.DirAndName()
	pool := f.pool(directory)
	select {
	case pool.turn <- struct{}{}:
		defer func() { <-pool.turn }()
	case <-ctx.Done():
		return fileID{}, ctx.Err()
	}
	if pool.batch == nil || pool.batch.used() {
		pool.batch = nil
		assigned, err := f.assign(ctx, path, collection, size)
		if err != nil {
			return fileID{}, err
		}
		pool.batch = assigned
	}
	return pool.batch.take(), nil
}

func (f *fileIDs) pool(directory string) *pool {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	found := f.pools[directory]
	if found == nil {
		if len(f.pools) == maxPools {
			clear(f.pools)
		}
		found = &pool{turn: make(chan struct{}, 1)}
		f.pools[directory] = found
	}
	return found
}

func (f *fileIDs) assign(ctx context.Context, path util.FullPath, collection string, size int) (*batch, error) {
	request := &filer_pb.AssignVolumeRequest{
		Count:            int32(min(batchIDs, max(1, batchBytes/size))),
		Collection:       collection,
		Path:             string(path),
		ExpectedDataSize: uint64(size),
	}
	var response *filer_pb.AssignVolumeResponse
	err := f.filers.call(ctx, func(client filer_pb.SeaweedFilerClient) (err error) {
		response, err = client.AssignVolume(ctx, request)
		return err
	})
	if err == nil && response.Error != "" {
		err = errors.New(response.Error)
	}
	if err != nil {
		return nil, fmt.Errorf("assign file ids in collection %s: %w", collection, err)
	}
	first, err := needle.ParseFileIdFromString(response.FileId)
	if err != nil {
		return nil, fmt.Errorf("assigned file id %q: %w", response.FileId, err)
	}
	assigned := &batch{
		first:   first,
		count:   max(1, int(response.Count)),
		url:     response.Location.GetUrl(),
		auth:    response.Auth,
		fsync:   response.Fsync,
		expires: time.Now().Add(batchAge),
	}
	if ends := tokenEnd(response.Auth); !ends.IsZero() && ends.Before(assigned.expires) {
		assigned.expires = ends
	}
	return assigned, nil
}

func (b *batch) used() bool {
	return b.taken == b.count || b.refused.Load() || time.Now().After(b.expires)
}

func (b *batch) take() fileID {
	n := b.taken
	b.taken++
	id := needle.NewFileId(b.first.VolumeId, uint64(b.first.Key)+uint64(n), uint32(b.first.Cookie)).String()
	if n == 0 {
		return fileID{b, id, id}
	}
	return fileID{b, id, fmt.Sprintf("%s_%d", b.first, n)}
}

// tokenEnd is when a token of the master should not be used any more. Zero: never, or no token.
func tokenEnd(token string) time.Time {
	var claims security.SeaweedFileIdClaims
	// Only the volume server can check the signature; a token that is no token it will refuse.
	if _, _, err := jwt.NewParser().ParseUnverified(token, &claims); err != nil || claims.ExpiresAt == nil {
		return time.Time{}
	}
	return claims.ExpiresAt.Add(-tokenMargin)
}
