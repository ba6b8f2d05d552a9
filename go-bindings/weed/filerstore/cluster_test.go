package filerstore

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	cryptorand "crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	upstream "github.com/seaweedfs/seaweedfs/weed/filer"
	"github.com/seaweedfs/seaweedfs/weed/security"
	"github.com/seaweedfs/seaweedfs/weed/util"
	util_http "github.com/seaweedfs/seaweedfs/weed/util/http"
	"github.com/spf13/viper"
	"kelp/go-bindings/weed/internal/weedtest"
)

const withTokens = `
[jwt.signing]
key = "write"
expires_after_seconds = 4
[jwt.signing.read]
key = "read"
expires_after_seconds = 4
`

func TestTokensOfVolumeServersAreUsedAndRenewed(t *testing.T) {
	s := weedtest.Own(t, withTokens)
	o := openOn(t, s)
	content := random(9 << 20)
	for i := range 3 {
		key := fmt.Sprintf("segment/1/%d", i)
		put(t, o, key, content)
		if !bytes.Equal(get(t, o, key, 5, 9<<20-7), content[5:9<<20-2]) {
			t.Errorf("%s: other bytes came back", key)
		}
		time.Sleep(2500 * time.Millisecond) // Of the tokens' 4 s.
	}
	response, err := http.Get(chunkURL(t, o, "segment/1/0"))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusUnauthorized {
		t.Errorf("without a token a chunk is read with status %s: the test's server asks for none", response.Status)
	}
}

func chunkURL(t *testing.T, o *Objects, key string) string {
	t.Helper()
	path, _ := o.path(key)
	entry, where, err := o.find(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	return "http://" + where.servers(entry.Chunks[0])[0] + "/" + entry.Chunks[0].GetFileIdString()
}

func TestTheFilersRuleForThePathCounts(t *testing.T) {
	s := weedtest.Own(t, "")
	var synced, uploads atomic.Int32
	o := openOn(t, s, func(options *Options) {
		options.HTTP = doFunc(func(request *http.Request) (*http.Response, error) {
			if request.Method == http.MethodPut {
				uploads.Add(1)
				if request.URL.Query().Get("fsync") == "true" {
					synced.Add(1)
				}
			}
			return http.DefaultClient.Do(request)
		})
	})
	// What is small may go to its entry while a collection gets its volumes.
	content := random(2 * hastyAtMost)
	put(t, o, "journal/1/0000000001/0", content)
	if synced.Load() != 0 {
		t.Error("an upload was synced without a rule")
	}
	setRule(t, o, `{"version":1,"locations":[{"locationPrefix":"`+o.options.Dir+`/journal/","fsync":true}]}`)
	// The filer learns of its rules by an event, and another directory has no ids yet.
	for epoch := 2; synced.Load() == 0; epoch++ {
		if epoch > 200 {
			t.Fatal("uploads are not synced")
		}
		put(t, o, fmt.Sprintf("journal/1/%010d/0", epoch), content)
		time.Sleep(50 * time.Millisecond)
	}
	// More than one of each, where an upload was sent again.
	before, syncedBefore := uploads.Load(), synced.Load()
	put(t, o, "segment/1/0000000001-1", content)
	if synced.Load() != syncedBefore || uploads.Load() == before {
		t.Error("the journal's rule was used for a segment")
	}

	for _, rule := range []string{`"ttl":"7d"`, `"worm":true`} {
		setRule(t, o, `{"version":1,"locations":[{"locationPrefix":"`+o.options.Dir+`",`+rule+`}]}`)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		if opened, err := Open(ctx, o.options); err == nil {
			opened.Close()
			t.Errorf("Kelp starts with the rule %s", rule)
		} else if !strings.Contains(err.Error(), "rule") {
			t.Errorf("rule %s: %v", rule, err)
		}
	}
}

func setRule(t *testing.T, o *Objects, text string) {
	t.Helper()
	client, err := o.filers.client(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := upstream.SaveInsideFiler(t.Context(), client, upstream.DirectoryEtcSeaweedFS, upstream.FilerConfName, []byte(text)); err != nil {
		t.Fatal(err)
	}
}

func TestAMasterThatAssignsNothingYetStopsNoCommit(t *testing.T) {
	s := weedtest.Own(t, "")
	o := openOn(t, s)
	put(t, o, "journal/1/0000000001/0", random(60_000))
	s.Kill()
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	put(t, o, "journal/1/0000000001/1", nil) // Waits for the filer.
	inEntry := func(key string) bool {
		t.Helper()
		path, _ := o.path(key)
		entry, _, err := o.find(t.Context(), path)
		if err != nil || entry == nil {
			t.Fatalf("entry of %s is %v, error %v", key, entry, err)
		}
		return len(entry.Content) > 0
	}
	// A directory that has no ids.
	for i, size := range []int{60_000, 1 << 20, inlineAtMost} {
		key, content := fmt.Sprintf("journal/1/0000000002/%d", i), random(size)
		put(t, o, key, content)
		if !inEntry(key) {
			t.Errorf("%d bytes waited for the master", size)
		}
		if !bytes.Equal(get(t, o, key, 9, 50_000), content[9:50_009]) {
			t.Errorf("%d bytes: other ones came back", size)
		}
	}
	o.inlined.Store(inlineTogether)
	put(t, o, "journal/1/0000000002/3", random(60_000))
	put(t, o, "journal/1/0000000002/4", random(1<<20))
	if small, large := inEntry("journal/1/0000000002/3"), inEntry("journal/1/0000000002/4"); !small || large {
		t.Errorf("with all taken that entries may: in its entry is what is small %t, what is large %t", small, large)
	}
	if left := o.inlined.Load(); left != 0 {
		t.Errorf("%d bytes count as in entries, though the master assigns", left)
	}
}

func TestWhatWasAnsweredSurvivesKillsOfTheServer(t *testing.T) {
	s := weedtest.Own(t, "")
	o := openOn(t, s, func(options *Options) { options.Timeout = time.Minute })
	put(t, o, "journal/1/0000000000/0", nil)
	var mutex sync.Mutex
	created := map[string][]byte{}
	unknown := 0
	stop := make(chan struct{})
	var writers sync.WaitGroup
	for writer := range 4 {
		writers.Go(func() {
			for seq := 0; ; seq++ {
				select {
				case <-stop:
					return
				default:
				}
				key := fmt.Sprintf("journal/1/%010d/%020d", writer, seq)
				content := random(100 + seq%3*8_000)
				was, err := o.PutNew(t.Context(), key, [][]byte{content})
				mutex.Lock()
				switch {
				case err != nil:
					unknown++
				case was:
					created[key] = content
				}
				mutex.Unlock()
			}
		})
	}
	for range 2 {
		time.Sleep(2 * time.Second)
		s.Kill()
		if err := s.Start(); err != nil {
			t.Fatal(err)
		}
		putWhenBack(t, o)
	}
	time.Sleep(time.Second)
	close(stop)
	writers.Wait()
	listed := map[string]bool{}
	for _, key := range list(t, o, "journal/1/", "", 1_000_000) {
		listed[key] = true
	}
	for key, content := range created {
		if !listed[key] || !bytes.Equal(get(t, o, key, 0, -1), content) {
			t.Errorf("%s was created, listed %t", key, listed[key])
		}
	}
	t.Logf("%d objects, %d puts with an unknown outcome", len(created), unknown)
	if unknown == 0 || len(created) < 100 {
		t.Error("the kills met no put")
	}
}

// putWhenBack waits until the server takes a put. One that goes to a connection whose end was not seen yet has an unknown outcome; the
// next ones wait for a new connection.
func putWhenBack(t *testing.T, o *Objects) {
	t.Helper()
	for attempt := 0; ; attempt++ {
		_, err := o.PutNew(t.Context(), fmt.Sprintf("journal/2/0000000000/%d", time.Now().UnixNano()), nil)
		if err == nil {
			return
		}
		if attempt == 20 {
			t.Fatal(err)
		}
		t.Log(err)
	}
}

const withTLS = `
[grpc]
ca = "DIR/ca.pem"
[grpc.master]
cert = "DIR/cert.pem"
key = "DIR/key.pem"
[grpc.volume]
cert = "DIR/cert.pem"
key = "DIR/key.pem"
[grpc.filer]
cert = "DIR/cert.pem"
key = "DIR/key.pem"
[grpc.mq]
cert = "DIR/cert.pem"
key = "DIR/key.pem"
[https.client]
enabled = true
ca = "DIR/ca.pem"
cert = "DIR/cert.pem"
key = "DIR/key.pem"
[https.volume]
ca = "DIR/ca.pem"
cert = "DIR/cert.pem"
key = "DIR/key.pem"
`

func TestAClusterWithTLSIsSpokenToWithTLS(t *testing.T) {
	dir := t.TempDir()
	writeCertificates(t, dir)
	text := strings.ReplaceAll(withTLS, "DIR", dir)
	s := weedtest.Own(t, text)
	util.ConfigurationFileDirectory.Set(s.Dir)
	util.LoadConfiguration("security", true) // LoadSecurityConfiguration does it only once in a process.
	t.Cleanup(viper.Reset)
	client, err := util_http.NewGlobalHttpClient()
	if err != nil {
		t.Fatal(err)
	}
	o := openOn(t, s, func(options *Options) {
		options.DialOption = security.LoadClientTLS(util.GetViper(), "grpc.mq")
		options.HTTP = client
	})
	content := random(9 << 20)
	put(t, o, "segment/1/x", content)
	if !bytes.Equal(get(t, o, "segment/1/x", 0, -1), content) {
		t.Error("other bytes came back")
	}
	if response, err := http.Get(chunkURL(t, o, "segment/1/x")); err == nil && response.StatusCode == http.StatusOK {
		t.Error("a chunk is read without TLS: the test's server does not ask for it")
	}
}

// writeCertificates makes an authority, and one certificate for servers and clients of this machine.
func writeCertificates(t *testing.T, dir string) {
	t.Helper()
	fail := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	template := func(serial int64) *x509.Certificate {
		return &x509.Certificate{
			SerialNumber:          big.NewInt(serial),
			Subject:               pkix.Name{CommonName: fmt.Sprint("kelp test ", serial)},
			NotBefore:             time.Now().Add(-time.Hour),
			NotAfter:              time.Now().Add(time.Hour),
			KeyUsage:              x509.KeyUsageDigitalSignature,
			ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
			BasicConstraintsValid: true,
			IPAddresses:           []net.IP{net.IPv4(127, 0, 0, 1)},
			DNSNames:              []string{"localhost"},
		}
	}
	authorityKey, err := ecdsa.GenerateKey(elliptic.P256(), cryptorand.Reader)
	fail(err)
	authority := template(1)
	authority.IsCA = true
	authority.KeyUsage |= x509.KeyUsageCertSign
	key, err := ecdsa.GenerateKey(elliptic.P256(), cryptorand.Reader)
	fail(err)
	write := func(name, kind string, bytes []byte, err error) {
		fail(err)
		fail(os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: bytes}), 0o600))
	}
	bytes, err := x509.CreateCertificate(cryptorand.Reader, authority, authority, &authorityKey.PublicKey, authorityKey)
	write("ca.pem", "CERTIFICATE", bytes, err)
	bytes, err = x509.CreateCertificate(cryptorand.Reader, template(2), authority, &key.PublicKey, authorityKey)
	write("cert.pem", "CERTIFICATE", bytes, err)
	bytes, err = x509.MarshalECPrivateKey(key)
	write("key.pem", "EC PRIVATE KEY", bytes, err)
}
