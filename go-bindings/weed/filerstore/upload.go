package filerstore

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seaweedfs/seaweedfs/weed/glog"
	"github.com/seaweedfs/seaweedfs/weed/operation"
	"github.com/seaweedfs/seaweedfs/weed/pb/filer_pb"
	"github.com/seaweedfs/seaweedfs/weed/util"
	"google.golang.org/protobuf/proto"
)

// upload is a chunk that a volume server has.
type upload struct {
	id    fileID
	chunk *filer_pb.FileChunk
}

// upload writes parts to volume servers, one chunk after the other, and waits for file ids as long as
// patience. When it fails no chunk stays, as far as that is known.
func (o *Objects) upload(ctx context.Context, path util.FullPath, parts [][]byte, size int, patience time.Duration) ([]upload, error) {
	loan := new(loan)
	defer loan.end()
	most := chunkBytes
	if size <= wholeBytes {
		most = size
	}
	var uploads []upload
	for offset := 0; offset < size; offset += most {
		length := min(most, size-offset)
		done, err := o.uploadChunk(ctx, path, loan, cut(parts, offset, length), length, patience)
		if err != nil {
			if len(uploads) > 0 {
				o.discard(uploads)
			}
			return nil, err
		}
		done.chunk.Offset = int64(offset)
		uploads = append(uploads, done)
	}
	return uploads, nil
}

// uploadChunk writes one chunk under a fresh file id. It tries a second volume when the first one
// did not take it: file ids are assigned ahead, and a volume may have become full or read-only
// since. That is safe, as no entry names the chunk yet.
func (o *Objects) uploadChunk(ctx context.Context, path util.FullPath, loan *loan, parts [][]byte, length int, patience time.Duration) (upload, error) {
	var refused error
	for range 2 {
		id, err := o.ids.take(ctx, path, o.collection(path), length, patience)
		if err != nil {
			return upload{}, errors.Join(refused, err)
		}
		chunk, err := o.put(ctx, id, loan, parts, length)
		if err == nil {
			return upload{id, chunk}, nil
		}
		refused = fmt.Errorf("chunk %s on %s: %w", id.name, id.batch.url, err)
		if ctx.Err() != nil {
			break
		}
		id.batch.refused.Store(true)
	}
	return upload{}, refused
}

// put sends the bytes as they are, without a multipart form around them.
func (o *Objects) put(ctx context.Context, id fileID, loan *loan, parts [][]byte, length int) (*filer_pb.FileChunk, error) {
	url := "http://" + id.batch.url + "/" + id.uploadName
	if id.batch.fsync {
		url += "?fsync=true"
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPut, url, loan.body(parts))
	if err != nil {
		return nil, err
	}
	request.ContentLength = int64(length)
	// The transport asks for another body when an idle connection was closed under it.
	request.GetBody = func() (io.ReadCloser, error) { return loan.body(parts), nil }
	// Any other type, or none, and the volume server may find the bytes worth compressing.
	request.Header.Set("Content-Type", "application/octet-stream")
	if id.batch.auth != "" {
		request.Header.Set("Authorization", "BEARER "+id.batch.auth)
	}
	response, err := o.options.HTTP.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, 64<<10))
	if err != nil {
		return nil, err
	}
	if response.StatusCode/100 != 2 {
		return nil, fmt.Errorf("%s: %s", response.Status, bytes.TrimSpace(text))
	}
	if response.StatusCode != http.StatusNoContent {
		var written struct{ Size int }
		if err := json.Unmarshal(text, &written); err != nil {
			return nil, fmt.Errorf("answer %q: %w", text, err)
		}
		if written.Size != length {
			return nil, fmt.Errorf("%d of %d bytes were written", written.Size, length)
		}
	}
	return &filer_pb.FileChunk{
		FileId:       id.name,
		Size:         uint64(length),
		ModifiedTsNs: time.Now().UnixNano(),
		ETag:         strings.Trim(response.Header.Get("ETag"), `"`),
	}, nil
}

// discard deletes the chunks of a put that was lost, in the background: nobody waits for it.
func (o *Objects) discard(uploads []upload) {
	o.background.Go(func() {
		ctx, cancel := context.WithTimeout(o.ctx, o.options.Timeout)
		defer cancel()
		names := make([]string, len(uploads))
		for i, upload := range uploads {
			names[i] = upload.id.name
		}
		find := func(volumes []string) (map[string]*operation.LookupResult, error) { return o.locate(ctx, volumes) }
		for _, result := range operation.DeleteFileIdsWithLookupVolumeId(ctx, o.options.DialOption, names, find) {
			if result.Error != "" && result.Status != http.StatusNotFound {
				glog.Warningf("kelp: chunk %s is garbage, which volume.fsck of weed shell finds: %s", result.FileId, result.Error)
			}
		}
	})
}

// locate finds the volume servers of volumes.
func (o *Objects) locate(ctx context.Context, volumes []string) (map[string]*operation.LookupResult, error) {
	var response *filer_pb.LookupVolumeResponse
	err := o.filers.call(ctx, func(client filer_pb.SeaweedFilerClient) (err error) {
		response, err = client.LookupVolume(ctx, &filer_pb.LookupVolumeRequest{VolumeIds: volumes})
		return err
	})
	if err != nil {
		return nil, err
	}
	results := map[string]*operation.LookupResult{}
	for volume, locations := range response.LocationsMap {
		results[volume] = &operation.LookupResult{VolumeOrFileId: volume}
		for _, location := range locations.Locations {
			results[volume].Locations = append(results[volume].Locations, operation.Location{
				Url: location.Url, PublicUrl: location.PublicUrl, GrpcPort: int(location.GrpcPort),
			})
		}
	}
	return results, nil
}

// chunksOf makes chunks of their own for a request, as a filer changes them.
func chunksOf(uploads []upload) []*filer_pb.FileChunk {
	chunks := make([]*filer_pb.FileChunk, len(uploads))
	for i, upload := range uploads {
		chunks[i] = proto.CloneOf(upload.chunk)
	}
	return chunks
}

func sameChunks(a, b []*filer_pb.FileChunk) bool {
	return slices.EqualFunc(a, b, func(a, b *filer_pb.FileChunk) bool {
		return a.GetFileIdString() == b.GetFileIdString()
	})
}

// loan is the memory that PutNew was lent. Go's transport may read a body after the request
// returned, so the bodies only read through the loan, and after its end they read nothing.
type loan struct {
	mutex sync.RWMutex
	ended bool
}

var errLoanEnded = errors.New("the put has returned, its memory is not ours to read any more")

// end takes the memory back. It waits for a copy that is going on, but for no peer.
func (l *loan) end() {
	l.mutex.Lock()
	l.ended = true
	l.mutex.Unlock()
}

func (l *loan) body(parts [][]byte) io.ReadCloser {
	return &body{loan: l, rest: slices.Clone(parts)}
}

// body reads parts one after the other. It must not implement io.WriterTo: that would hand the
// lent memory to the connection.
type body struct {
	loan *loan
	rest [][]byte
}

func (b *body) Read(into []byte) (n int, err error) {
	b.loan.mutex.RLock()
	defer b.loan.mutex.RUnlock()
	if b.loan.ended {
		return 0, errLoanEnded
	}
	for n < len(into) && len(b.rest) > 0 {
		copied := copy(into[n:], b.rest[0])
		n += copied
		if b.rest[0] = b.rest[0][copied:]; len(b.rest[0]) == 0 {
			b.rest = b.rest[1:]
		}
	}
	if n == 0 && len(into) > 0 {
		return 0, io.EOF
	}
	return n, nil
}

func (b *body) Close() error { return nil }

// cut returns length bytes from offset, without copying any.
func cut(parts [][]byte, offset, length int) (rest [][]byte) {
	for _, part := range parts {
		if offset >= len(part) {
			offset -= len(part)
			continue
		}
		part = part[offset:min(len(part), offset+length)]
		offset = 0
		if length -= len(part); len(part) > 0 {
			rest = append(rest, part)
		}
	}
	return rest
}
