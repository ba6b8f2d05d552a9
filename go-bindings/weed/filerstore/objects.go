// Package filerstore keeps Kelp's objects on a SeaweedFS filer.
//
// An object is an entry of the filer below Options.Dir, and its key is the entry's path: the
// slashes of a key are directories. A small object is the entry's own content; a larger one is a
// list of chunks on volume servers, written before the entry is created. Creating the entry is
// what makes the object exist: the filer looks and inserts under one lock, so of all who put the
// same new key exactly one wins.
//
//	PutNew ─▶ file ids (assigned in batches) ─▶ PUT chunks (one by one) ─▶ CreateEntry, o_excl
//	Get    ─▶ LookupDirectoryEntries (entry, places, tokens) ─▶ GET ranges of chunks
//	List   ─▶ ListEntries, directory by directory, in the order of keys
//	Delete ─▶ ObjectTransactionBatch of deletions, which also delete the chunks
package filerstore

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/seaweedfs/seaweedfs/weed/pb/filer_pb"
	"github.com/seaweedfs/seaweedfs/weed/util"
	util_http "github.com/seaweedfs/seaweedfs/weed/util/http"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
)

const (
	// Content below this is kept in the entry itself. The filer writes such content again to its
	// metadata log, at create and at delete, so more is cheaper as a chunk (docs/performance.md).
	inlineBelow = 12 << 10

	// For some 15 s after a master has started it assigns no file ids, and no setting changes that.
	// Content of these sizes goes to the entry then, so that the journal does not stand still: what is
	// small always, what is larger until it is this much. The filer keeps it in memory meanwhile, as
	// its metadata log needs file ids too. An entry must fit in the 4 MiB that gRPC clients take
	// without being told otherwise.
	smallInline    = 64 << 10
	inlineAtMost   = 4<<20 - 4<<10
	inlineTogether = 64 << 20

	// So long content waits for a file id before that. A master that makes new volumes answers after
	// 200 ms, for which a commit that clients wait for does not wait. What came while one waited is in
	// the next, which is not so small.
	hastyAtMost   = 512 << 10
	hastyPatience = 10 * time.Millisecond
	patienceForID = 250 * time.Millisecond

	// What is no larger is one chunk: clients wait for commits, and a chunk costs the most for being one.
	// The rest has time, and is cut smaller, as commits wait longer for a processor beside large
	// chunks (docs/performance.md).
	wholeBytes = 8 << 20
	chunkBytes = 2 << 20

	// The filer folds long lists of chunks into a manifest, which Get does not read. It starts
	// at 1,000 chunks.
	maxObjectBytes = 512 * chunkBytes

	// How many chunks of one object are read at once.
	parallel = 4

	// A volume server reads a whole chunk to check it before it sends the first range of it, and checks and
	// copies that once more: a range costs so many times what it is of the whole (docs/performance.md).
	rangeCosts = 2

	// How many objects one request deletes: few, as commits wait beside it.
	deleteBatch = 8

	// The names of the filer's entries: longer ones are refused by common stores.
	maxNameBytes = 255

	defaultTimeout = 30 * time.Second
)

// Options say where the objects are.
type Options struct {
	Masters    string // HOST:PORT, several separated by commas
	FilerGroup string
	Dir        string // the directory of the filer that holds everything, such as /kelp
	// DialOption carries the TLS of gRPC. The zero value is without.
	DialOption grpc.DialOption
	// HTTP sends to the volume servers. nil: SeaweedFS' own client, with TLS as https.client says.
	HTTP interface {
		Do(*http.Request) (*http.Response, error)
	}
	// ClientAddress names this process to the master. Empty: the master makes a name up.
	ClientAddress string
	// Timeout limits each call that has no nearer deadline. Zero is 30 s.
	Timeout time.Duration
}

// Objects is a store of immutable objects. Its methods are called from many goroutines.
type Objects struct {
	options Options
	filers  *filers
	ids     *fileIDs
	known   known
	inlined atomic.Int64 // Bytes that went to entries since there was a file id.

	// What goes on after a call returned.
	background sync.WaitGroup
	ctx        context.Context
	stop       context.CancelFunc
}

// Open finds the filers of the group. It waits until one of them answers, or ctx ends.
func Open(ctx context.Context, options Options) (*Objects, error) {
	options.Dir = "/" + strings.Trim(options.Dir, "/")
	if options.Dir == "/" {
		return nil, errors.New("the directory of the objects cannot be the filer's root")
	}
	if options.Timeout == 0 {
		options.Timeout = defaultTimeout
	}
	if options.DialOption == nil {
		options.DialOption = grpc.WithTransportCredentials(insecure.NewCredentials())
	}
	if options.HTTP == nil {
		options.HTTP = util_http.GetGlobalHttpClient()
	}
	o := &Objects{options: options, filers: newFilers(options)}
	o.ids = newFileIDs(options, o.filers)
	o.ctx, o.stop = context.WithCancel(context.Background())
	wait := 100 * time.Millisecond
	for {
		err := o.checkRule(ctx)
		if err == nil {
			return o, nil
		}
		if status.Code(err) != codes.Unavailable || !sleep(ctx, wait) {
			o.Close()
			return nil, err
		}
		wait = min(2*wait, 5*time.Second)
	}
}

// sleep is false when ctx ended it.
func sleep(ctx context.Context, duration time.Duration) bool {
	select {
	case <-time.After(duration):
		return true
	case <-ctx.Done():
		return false
	}
}

// Close ends what goes on in the background. No call may be under way.
func (o *Objects) Close() {
	o.background.Wait()
	o.stop()
	o.filers.close()
}

// PutNew stores parts, one after the other, under key. created is false when the key exists
// already. After an error the outcome is unknown. It does not look at parts after it returned.
func (o *Objects) PutNew(ctx context.Context, key string, parts [][]byte) (created bool, err error) {
	path, err := o.path(key)
	if err != nil {
		return false, err
	}
	ctx, cancel := context.WithTimeout(ctx, o.options.Timeout)
	defer cancel()

	size := 0
	for _, part := range parts {
		size += len(part)
	}
	if size > maxObjectBytes {
		return false, fmt.Errorf("put %s: %d bytes are more than the %d that an object may have", key, size, maxObjectBytes)
	}
	if size < inlineBelow {
		return o.create(ctx, path, size, join(parts, size), nil)
	}
	inlines, patience := o.mayInline(size), o.options.Timeout
	switch {
	case inlines && size <= hastyAtMost:
		patience = hastyPatience
	case inlines:
		patience = patienceForID
	}
	uploads, err := o.upload(ctx, path, parts, size, patience)
	switch {
	case errors.Is(err, errNoFileID) && inlines:
		o.inlined.Add(int64(size))
		return o.create(ctx, path, size, join(parts, size), nil)
	case err != nil:
		return false, fmt.Errorf("put %s: %w", key, err)
	}
	o.inlined.Store(0)
	return o.create(ctx, path, size, nil, uploads)
}

// mayInline is whether content goes to the entry when there is no file id for it.
func (o *Objects) mayInline(size int) bool {
	return size <= smallInline || size <= inlineAtMost && o.inlined.Load()+int64(size) <= inlineTogether
}

// create makes the entry of what is its content or was uploaded, unless the path exists.
func (o *Objects) create(ctx context.Context, path util.FullPath, size int, content []byte, uploads []upload) (bool, error) {
	now := time.Now()
	response, err := o.createEntry(ctx, path, &filer_pb.Entry{
		Content: content,
		Chunks:  chunksOf(uploads),
		Attributes: &filer_pb.FuseAttributes{
			FileSize: uint64(size),
			Mtime:    now.Unix(),
			MtimeNs:  int32(now.Nanosecond()),
			Crtime:   now.Unix(),
			FileMode: 0o660,
		},
	})
	if err != nil {
		return false, err
	}
	if response == filer_pb.FilerError_ENTRY_ALREADY_EXISTS {
		return o.lost(ctx, path, uploads)
	}
	return true, nil
}

// createEntry answers OK or ENTRY_ALREADY_EXISTS. An error says nothing about what happened.
func (o *Objects) createEntry(ctx context.Context, path util.FullPath, entry *filer_pb.Entry) (filer_pb.FilerError, error) {
	directory, name := path.DirAndName()
	entry.Name = name
	request := &filer_pb.CreateEntryRequest{Directory: directory, Entry: entry, OExcl: true}
	var response *filer_pb.CreateEntryResponse
	err := o.filers.call(ctx, func(client filer_pb.SeaweedFilerClient) (err error) {
		response, err = client.CreateEntry(ctx, request)
		return err
	})
	switch {
	case err != nil:
		return 0, fmt.Errorf("create %s: %w", path, err)
	case response.ErrorCode == filer_pb.FilerError_ENTRY_ALREADY_EXISTS:
		return response.ErrorCode, nil
	case response.ErrorCode != filer_pb.FilerError_OK || response.Error != "":
		return 0, fmt.Errorf("create %s: %s: %s", path, response.ErrorCode, response.Error)
	}
	return filer_pb.FilerError_OK, nil
}

// lost answers for a key that exists already: it makes sure that List shows it, and deletes the
// chunks that were uploaded in vain.
func (o *Objects) lost(ctx context.Context, path util.FullPath, uploads []upload) (created bool, err error) {
	directories := ancestors(path)
	found, err := o.lookup(ctx, append([]util.FullPath{path}, directories...)...)
	if err != nil {
		return false, err
	}
	for i, directory := range directories {
		if found.entries[i+1] != nil {
			continue
		}
		// The filer inserts an entry before its directories. Had it died in between, the entry
		// would exist and no list would show it.
		now := time.Now().Unix()
		attributes := &filer_pb.FuseAttributes{Mtime: now, Crtime: now, FileMode: uint32(os.ModeDir | 0o770)}
		if _, err := o.createEntry(ctx, directory, &filer_pb.Entry{IsDirectory: true, Attributes: attributes}); err != nil {
			return false, err
		}
	}
	switch winner := found.entries[0]; {
	case winner == nil:
		// Deleted since. What it was is not known, so its chunks may be these, and they stay.
		return false, nil
	case winner.IsDirectory:
		return false, fmt.Errorf("%s is a directory: no key can be the beginning of another one's path", path)
	case len(uploads) > 0 && sameChunks(winner.Chunks, chunksOf(uploads)):
		return true, nil
	}
	o.discard(uploads)
	return false, nil
}

// Delete removes objects. A key that does not exist is no error.
//
// Nobody waits for a deletion, and commits share the filer with it: after each batch it leaves the
// filer alone for as long as the batch took. Thousands of small commits are deleted at a time.
func (o *Objects) Delete(ctx context.Context, keys []string) error {
	ctx, cancel := context.WithTimeout(ctx, o.options.Timeout)
	defer cancel()
	var failed []error
	for batch := range slices.Chunk(keys, deleteBatch) {
		began := time.Now()
		if err := o.deleteBatch(ctx, batch); err != nil {
			failed = append(failed, err)
		}
		if len(batch) == deleteBatch {
			sleep(ctx, time.Since(began))
		}
	}
	return errors.Join(failed...)
}

// deleteBatch is one request, in which each deletion succeeds or fails on its own.
func (o *Objects) deleteBatch(ctx context.Context, keys []string) error {
	request := &filer_pb.ObjectTransactionBatchRequest{}
	for _, key := range keys {
		path, err := o.path(key)
		if err != nil {
			return err
		}
		directory, name := path.DirAndName()
		request.Transactions = append(request.Transactions, &filer_pb.ObjectTransactionRequest{
			LockKey:   string(path),
			Mutations: []*filer_pb.ObjectMutation{{Type: filer_pb.ObjectMutation_DELETE, Directory: directory, Name: name, IsDeleteData: true}},
		})
	}
	var response *filer_pb.ObjectTransactionBatchResponse
	err := o.filers.call(ctx, func(client filer_pb.SeaweedFilerClient) (err error) {
		response, err = client.ObjectTransactionBatch(ctx, request)
		return err
	})
	if err == nil && len(response.Responses) != len(keys) {
		err = fmt.Errorf("%d answers to %d deletions", len(response.Responses), len(keys))
	}
	if err != nil {
		return fmt.Errorf("delete %s and %d more: %w", keys[0], len(keys)-1, err)
	}
	var failed []error
	for i, one := range response.Responses {
		if one.Error != "" {
			failed = append(failed, fmt.Errorf("delete %s: %s", keys[i], one.Error))
			continue
		}
		o.known.forget(util.FullPath(request.Transactions[i].LockKey))
	}
	return errors.Join(failed...)
}

// path is where the object of a key is on the filer. A key that the filer would store under
// another name is refused.
func (o *Objects) path(key string) (util.FullPath, error) {
	if !utf8.ValidString(key) || strings.ContainsRune(key, 0) {
		return "", fmt.Errorf("key %q is not text", key)
	}
	for name := range strings.SplitSeq(key, "/") {
		if name == "" || name == "." || name == ".." || len(name) > maxNameBytes {
			return "", fmt.Errorf("key %q has a part that cannot be the name of a file", key)
		}
	}
	return util.FullPath(o.options.Dir + "/" + key), nil
}

// collection separates the journal, of which much is deleted soon and most goes by its age, from
// what is rewritten and stays.
func (o *Objects) collection(path util.FullPath) string {
	if strings.HasPrefix(string(path), o.options.Dir+"/journal/") {
		return "kelp-journal"
	}
	return "kelp"
}

// ancestors are the directories above path but the root, nearest first.
func ancestors(path util.FullPath) (directories []util.FullPath) {
	for {
		directory, _ := path.DirAndName()
		if directory == "/" {
			return directories
		}
		path = util.FullPath(directory)
		directories = append(directories, path)
	}
}

// inParallel calls work(0) to work(n-1), a few at a time, and waits for all of them.
func inParallel(n int, work func(i int) error) error {
	if n == 1 {
		return work(0)
	}
	var group sync.WaitGroup
	failed := make([]error, n)
	places := make(chan struct{}, parallel)
	for i := range n {
		places <- struct{}{}
		group.Go(func() {
			defer func() { <-places }()
			failed[i] = work(i)
		})
	}
	group.Wait()
	return errors.Join(failed...)
}

func join(parts [][]byte, size int) []byte {
	whole := make([]byte, 0, size)
	for _, part := range parts {
		whole = append(whole, part...)
	}
	return whole
}
