package filerstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/seaweedfs/seaweedfs/weed/pb/filer_pb"
	"github.com/seaweedfs/seaweedfs/weed/util"
	"github.com/seaweedfs/seaweedfs/weed/util/mem"
)

// Get returns length bytes from offset; length < 0 is to the end, and a range past the end is cut.
// alloc, when not nil, gives the memory that is read into.
func (o *Objects) Get(ctx context.Context, key string, offset, length int64, alloc func(n int) []byte) (data []byte, found bool, err error) {
	path, err := o.path(key)
	if err != nil {
		return nil, false, err
	}
	if offset < 0 {
		return nil, false, fmt.Errorf("get %s from offset %d", key, offset)
	}
	ctx, cancel := context.WithTimeout(ctx, o.options.Timeout)
	defer cancel()

	// Who reads on behind the beginning has met the object before. The beginning, and the whole, tell
	// whether it is there, and that the filer is always asked.
	readsOn := offset > 0 && length >= 0
	if object, found := o.known.of(path); found && readsOn {
		data = allocate(alloc, clamp(size(object.entry), offset, length))
		if err = o.read(ctx, object.entry, object.where, offset, data); err == nil {
			return data, true, nil
		}
		o.known.forget(path)
	}
	// An object never changes, but its chunks may go to other servers while they are read, or be
	// deleted with it. The second look tells which.
	for range 2 {
		entry, where, lookupErr := o.find(ctx, path)
		if lookupErr != nil || entry == nil {
			return nil, false, lookupErr
		}
		if readsOn {
			o.known.remember(path, entry, where)
		}
		if n := clamp(size(entry), offset, length); data == nil || int64(len(data)) != n {
			data = allocate(alloc, n)
		}
		if err = o.read(ctx, entry, where, offset, data); err == nil {
			return data, true, nil
		}
	}
	return nil, false, fmt.Errorf("get %s: %w", key, err)
}

// clamp is how much of length bytes from offset an object of size bytes has.
func clamp(size, offset, length int64) int64 {
	rest := max(0, size-offset)
	if length < 0 {
		return rest
	}
	return min(rest, length)
}

func allocate(alloc func(n int) []byte, n int64) []byte {
	if n == 0 || alloc == nil {
		return make([]byte, n)
	}
	return alloc(int(n))
}

func size(entry *filer_pb.Entry) int64 {
	if len(entry.Chunks) == 0 {
		return int64(len(entry.Content))
	}
	last := entry.Chunks[len(entry.Chunks)-1]
	return last.Offset + int64(last.Size)
}

// read fills into with the bytes of an object from offset.
func (o *Objects) read(ctx context.Context, entry *filer_pb.Entry, where lookup, offset int64, into []byte) error {
	if len(entry.Chunks) == 0 {
		copy(into, entry.Content[min(offset, int64(len(entry.Content))):])
		return nil
	}
	end := offset + int64(len(into))
	var pieces []piece
	next := int64(0)
	for _, chunk := range entry.Chunks {
		if chunk.IsChunkManifest || len(chunk.CipherKey) > 0 || chunk.IsCompressed || chunk.Offset != next {
			return fmt.Errorf("%s is not an object that Kelp wrote", entry.Name)
		}
		next += int64(chunk.Size)
		from, to := max(offset, chunk.Offset), min(end, next)
		if from < to {
			pieces = append(pieces, piece{chunk, from - chunk.Offset, into[from-offset : to-offset]})
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	return inParallel(len(pieces), func(i int) error {
		err := o.readPiece(ctx, pieces[i], where)
		if err != nil {
			cancel()
		}
		return err
	})
}

// piece is a part of a chunk, and the memory it goes to.
type piece struct {
	chunk  *filer_pb.FileChunk
	offset int64
	into   []byte
}

// readPiece asks one server after the other.
func (o *Objects) readPiece(ctx context.Context, piece piece, where lookup) error {
	id := piece.chunk.GetFileIdString()
	servers := where.servers(piece.chunk)
	failed := fmt.Errorf("chunk %s has no server", id)
	for _, server := range servers {
		if failed = o.fetch(ctx, server, id, where.tokens[id], piece); failed == nil {
			return nil
		}
		failed = fmt.Errorf("chunk %s from %s: %w", id, server, failed)
	}
	return failed
}

func (o *Objects) fetch(ctx context.Context, server, id, token string, piece piece) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+server+"/"+id, nil)
	if err != nil {
		return err
	}
	status, before, end := http.StatusOK, piece.offset, piece.offset+int64(len(piece.into))
	behind := int64(piece.chunk.Size) - end
	if int64(len(piece.into))*rangeCosts < int64(piece.chunk.Size) {
		status, before, behind = http.StatusPartialContent, 0, 0
		request.Header.Set("Range", fmt.Sprintf("bytes=%d-%d", piece.offset, end-1))
	}
	request.Header.Set("Accept-Encoding", "identity")
	if token != "" {
		request.Header.Set("Authorization", "BEARER "+token)
	}
	response, err := o.options.HTTP.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != status {
		return errors.New(response.Status)
	}
	if err := skip(response.Body, before); err != nil {
		return err
	}
	if _, err := io.ReadFull(response.Body, piece.into); err != nil {
		return err
	}
	if err := skip(response.Body, behind); err != nil {
		return err
	}
	// Also lets the connection be used again.
	if n, err := response.Body.Read(make([]byte, 1)); n != 0 || err != io.EOF {
		return errors.New("the answer is longer than what was asked for")
	}
	return nil
}

// skip reads n bytes that nobody wants.
func skip(from io.Reader, n int64) error {
	if n == 0 {
		return nil
	}
	scratch := mem.Allocate(int(min(n, 256<<10)))
	defer mem.Free(scratch)
	for n > 0 {
		read, err := io.ReadFull(from, scratch[:min(n, int64(len(scratch)))])
		if n -= int64(read); err != nil {
			return err
		}
	}
	return nil
}

// lookup is what the filer says about paths.
type lookup struct {
	entries   []*filer_pb.Entry // nil: there is none
	locations map[string]*filer_pb.Locations
	tokens    map[string]string
}

// find returns the entry of an object, or nil.
func (o *Objects) find(ctx context.Context, path util.FullPath) (*filer_pb.Entry, lookup, error) {
	found, err := o.lookup(ctx, path)
	if err != nil || found.entries[0] == nil || found.entries[0].IsDirectory {
		return nil, found, err
	}
	return found.entries[0], found, nil
}

// lookup asks for several entries at once, the places of their chunks and the tokens to read them.
func (o *Objects) lookup(ctx context.Context, paths ...util.FullPath) (lookup, error) {
	request := &filer_pb.LookupDirectoryEntriesRequest{}
	for _, path := range paths {
		directory, name := path.DirAndName()
		request.Requests = append(request.Requests, &filer_pb.LookupDirectoryEntryRequest{Directory: directory, Name: name})
	}
	var response *filer_pb.LookupDirectoryEntriesResponse
	err := o.filers.callAgain(ctx, func(client filer_pb.SeaweedFilerClient) (err error) {
		response, err = client.LookupDirectoryEntries(ctx, request)
		return err
	})
	if err != nil {
		return lookup{}, fmt.Errorf("look up %s: %w", paths[0], err)
	}
	if len(response.Results) != len(paths) {
		return lookup{}, fmt.Errorf("look up %s: %d answers to %d questions", paths[0], len(response.Results), len(paths))
	}
	found := lookup{make([]*filer_pb.Entry, len(paths)), response.LocationsMap, response.ReadAuth}
	for i, result := range response.Results {
		if result.Error != "" {
			return lookup{}, fmt.Errorf("look up %s: %s", paths[i], result.Error)
		}
		if result.Found {
			found.entries[i] = result.Entry
		}
	}
	return found, nil
}

// servers are where a chunk can be read.
func (l lookup) servers(chunk *filer_pb.FileChunk) (servers []string) {
	volume, _, _ := strings.Cut(chunk.GetFileIdString(), ",")
	for _, location := range l.locations[volume].GetLocations() {
		servers = append(servers, location.Url)
	}
	return servers
}
