package filerstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/seaweedfs/seaweedfs/weed/pb/filer_pb"
	"github.com/seaweedfs/seaweedfs/weed/util"
)

// How many entries are asked for at once.
const listPage = 1024

// List returns up to limit keys that begin with prefix and are greater than after, in order. Fewer
// than limit are all that there are.
func (o *Objects) List(ctx context.Context, prefix, after string, limit int) ([]string, error) {
	if limit <= 0 {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, o.options.Timeout)
	defer cancel()
	directory, name := "", prefix
	if slash := strings.LastIndexByte(prefix, '/'); slash >= 0 {
		directory, name = prefix[:slash+1], prefix[slash+1:]
	}
	list := listing{objects: o, ctx: ctx, after: after, limit: limit}
	if err := list.directory(directory, name); err != nil && !errors.Is(err, errListFull) {
		return nil, fmt.Errorf("list %s: %w", prefix, err)
	}
	return list.keys, nil
}

// listing walks directories in the order of keys.
//
// The filer lists a directory in the order of names, and that is not the order of keys: of the
// names "a" (a directory), "a-b" and "ab", the keys are a-b, a/..., ab, since '-' is less than '/'.
// So a directory waits until a name follows that is greater than its own with the slash.
type listing struct {
	objects *Objects
	ctx     context.Context
	after   string
	limit   int
	keys    []string
}

var errListFull = errors.New("the limit is reached")

// directory adds the keys below a directory, which is empty or ends with a slash. Its entries must
// begin with prefix.
func (l *listing) directory(directory, prefix string) error {
	rest, inside := strings.CutPrefix(l.after, directory)
	if !inside && l.after > directory {
		return nil // All of its keys are less.
	}
	if !inside {
		rest = ""
	}
	from, waiting, err := l.start(directory, prefix, rest)
	if err != nil {
		return err
	}
	// The waiting directories form a stack: each name begins with the one below it.
	enter := func(before string) error {
		for len(waiting) > 0 {
			last := waiting[len(waiting)-1]
			if before != "" && before <= last+"/" {
				return nil
			}
			waiting = waiting[:len(waiting)-1]
			if err := l.directory(directory+last+"/", ""); err != nil {
				return err
			}
		}
		return nil
	}
	for inclusive := true; ; inclusive = false {
		size := min(listPage, l.limit-len(l.keys))
		page, err := l.page(directory, prefix, from, inclusive, size)
		if err != nil {
			return err
		}
		for _, entry := range page {
			from = entry.Name
			if err := enter(entry.Name); err != nil {
				return err
			}
			if entry.IsDirectory {
				waiting = append(waiting, entry.Name)
			} else if err := l.add(directory + entry.Name); err != nil {
				return err
			}
		}
		if len(page) < size {
			return enter("")
		}
	}
}

// start is the name that a directory is listed from, when keys up to after (without the directory)
// are left out, and the directories that come before it by name but not by key.
func (l *listing) start(directory, prefix, after string) (from string, waiting []string, err error) {
	from, _, _ = strings.Cut(after, "/")
	if !strings.HasPrefix(from, prefix) {
		return from, nil, nil
	}
	for i := max(1, len(prefix)); i < len(from); i++ {
		if from[i] > '/' {
			continue
		}
		found, err := l.objects.lookup(l.ctx, l.path(directory+from[:i]))
		if err != nil {
			return "", nil, err
		}
		if entry := found.entries[0]; entry != nil && entry.IsDirectory {
			waiting = append(waiting, from[:i])
		}
	}
	return from, waiting, nil
}

func (l *listing) add(key string) error {
	if key <= l.after {
		return nil
	}
	l.keys = append(l.keys, key)
	if len(l.keys) == l.limit {
		return errListFull
	}
	return nil
}

func (l *listing) path(key string) util.FullPath {
	return util.FullPath(strings.TrimSuffix(l.objects.options.Dir+"/"+key, "/"))
}

// page reads entries of one directory. A directory that does not exist has none.
func (l *listing) page(directory, prefix, from string, inclusive bool, size int) (page []*filer_pb.Entry, err error) {
	request := &filer_pb.ListEntriesRequest{
		Directory:          string(l.path(directory)),
		Prefix:             prefix,
		StartFromFileName:  from,
		InclusiveStartFrom: inclusive,
		Limit:              uint32(size),
		OmitChunks:         true,
	}
	err = l.objects.filers.callAgain(l.ctx, func(client filer_pb.SeaweedFilerClient) error {
		page = page[:0]
		stream, err := client.ListEntries(l.ctx, request)
		if err != nil {
			return err
		}
		for {
			response, err := stream.Recv()
			if err == io.EOF {
				return nil
			}
			if err != nil {
				return err
			}
			page = append(page, response.Entry)
		}
	})
	return page, err
}
