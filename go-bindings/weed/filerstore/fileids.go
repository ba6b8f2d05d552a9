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
	options Options
	filers  *filers
	mutex   sync.Mutex
	pools   map[string]*pool
}

type pool struct {
	mutex   sync.Mutex
	batch   *batch
	pending *assignment
}

// assignment is a request for a batch. It goes on when those who wait for it have given up.
type assignment struct {
	started time.Time
	done    chan struct{}
	err     error // Set when done.
}

var errNoFileID = errors.New("the master assigns no file ids")

func newFileIDs(options Options, filers *filers) *fileIDs {
	return &fileIDs{options: options, filers: filers, pools: map[string]*pool{}}
}

// take returns an id for a chunk of an object at path. It fails with errNoFileID when the master has
// been asked for as long as patience and has not answered.
func (f *fileIDs) take(ctx context.Context, path util.FullPath, collection string, size int, patience time.Duration) (fileID, error) {
	directory, _ := path.DirAndName()
	pool := f.pool(directory)
	for {
		id, pending := pool.take(func() (*batch, error) { return f.assign(path, collection, size) })
		if pending == nil {
			return id, nil
		}
		timer := time.NewTimer(patience - time.Since(pending.started))
		select {
		case <-pending.done:
			timer.Stop()
			if pending.err != nil {
				return fileID{}, pending.err
			}
		case <-timer.C:
			return fileID{}, errNoFileID
		case <-ctx.Done():
			timer.Stop()
			return fileID{}, ctx.Err()
		}
	}
}

// take returns an id, or the assignment to wait for.
func (p *pool) take(assign func() (*batch, error)) (fileID, *assignment) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.batch != nil && !p.batch.used() {
		return p.batch.take(), nil
	}
	if p.pending == nil {
		pending := &assignment{started: time.Now(), done: make(chan struct{})}
		p.pending = pending
		go func() {
			assigned, err := assign()
			p.mutex.Lock()
			defer p.mutex.Unlock()
			p.batch, p.pending, pending.err = assigned, nil, err
			close(pending.done)
		}()
	}
	return fileID{}, p.pending
}

func (f *fileIDs) pool(directory string) *pool {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	found := f.pools[directory]
	if found == nil {
		if len(f.pools) == maxPools {
			clear(f.pools)
		}
		found = &pool{}
		f.pools[directory] = found
	}
	return found
}

func (f *fileIDs) assign(path util.FullPath, collection string, size int) (*batch, error) {
	ctx, cancel := context.WithTimeout(context.Background(), f.options.Timeout)
	defer cancel()
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
