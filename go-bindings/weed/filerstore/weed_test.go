package filerstore

import (
	"context"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"kelp/go-bindings/weed/internal/weedtest"
)

func TestMain(m *testing.M) {
	if weedtest.RunsAsWeed() {
		return
	}
	status := m.Run()
	if shared.server != nil {
		shared.server.Kill()
		os.RemoveAll(shared.server.Dir)
	}
	os.Exit(status)
}

var shared struct {
	once   sync.Once
	server *weedtest.Server
	err    error
}

// open returns objects on a server that all tests share, each in a directory of its own.
func open(t testing.TB, change ...func(*Options)) *Objects {
	t.Helper()
	shared.once.Do(func() {
		dir, err := os.MkdirTemp("", "kelp-filerstore-")
		if err == nil {
			shared.server, err = weedtest.New(dir, "")
		}
		shared.err = err
	})
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return openOn(t, shared.server, change...)
}

func openOn(t testing.TB, server *weedtest.Server, change ...func(*Options)) *Objects {
	t.Helper()
	options := Options{Masters: server.Masters(), Dir: "/kelp-" + strings.ReplaceAll(t.Name(), "/", "-")}
	for _, change := range change {
		change(&options)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	objects, err := Open(ctx, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(objects.Close)
	return objects
}
