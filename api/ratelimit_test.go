package api_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"repute/api"
	"repute/internal/freeport"
	"repute/internal/httpapi"

	"github.com/redis/go-redis/v9"
)

// tight lets three requests through and then one per minute.
func tight() httpapi.Limits { return httpapi.Limits{Rate: 1.0 / 60, Burst: 3} }

// passes asks n times and counts what was let through.
func passes(t *testing.T, s *httptest.Server, n int, headers ...string) (passed int) {
	t.Helper()
	for range n {
		r := get(t, s, "/openapi.json", headers...)
		if r.status == http.StatusOK {
			passed++
			continue
		}
		b := problemOf(t, r)
		wait, err := strconv.Atoi(r.header.Get("Retry-After"))
		if b.Status != http.StatusTooManyRequests || err != nil || wait < 1 || wait > 61 {
			t.Errorf("%d, Retry-After %q", b.Status, r.header.Get("Retry-After"))
		}
	}
	return passed
}

func TestRateLimit(t *testing.T) {
	t.Parallel()
	s := serve(t, api.Options{DB: open(t, nowhere)}, httpapi.ServerOptions{Limits: tight()})
	if n := passes(t, s, 5); n != 3 {
		t.Errorf("%d passed, want 3", n)
	}
	if n := passes(t, s, 1, "X-Forwarded-For", "203.0.113.9"); n != 0 {
		t.Error("a caller names itself")
	}
	for _, path := range []string{"/healthz", "/metrics"} {
		if r := get(t, s, path); r.status != http.StatusOK {
			t.Errorf("%s is limited: %d", path, r.status)
		}
	}
	if r := get(t, s, "/readyz"); r.status == http.StatusTooManyRequests {
		t.Error("/readyz is limited")
	}
	free := serve(t, api.Options{DB: open(t, nowhere)}, unlimited())
	if n := passes(t, free, 300); n != 300 {
		t.Errorf("without a limit %d of 300 passed", n)
	}
}

// TestTrustedProxy: behind a proxy of ours every caller has its own limit; an
// IPv6 network counts as one caller.
func TestTrustedProxy(t *testing.T) {
	t.Parallel()
	limits := tight()
	limits.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	s := serve(t, api.Options{DB: open(t, nowhere)}, httpapi.ServerOptions{Limits: limits})
	for _, caller := range []string{"203.0.113.1", "203.0.113.2", "spoofed, 203.0.113.3", "2001:db8:1::1"} {
		if n := passes(t, s, 4, "X-Forwarded-For", caller); n != 3 {
			t.Errorf("%s: %d passed, want 3", caller, n)
		}
	}
	if n := passes(t, s, 1, "X-Forwarded-For", "2001:db8:1::2"); n != 0 {
		t.Error("a neighbor address starts afresh")
	}
}

// TestSharedRateLimit: replicas on one Redis count together; without it each
// counts alone.
func TestSharedRateLimit(t *testing.T) {
	t.Parallel()
	server := startRedis(t)
	client := server.patient(t)
	var replicas []*httptest.Server
	for range 3 {
		replicas = append(replicas,
			serve(t, api.Options{DB: open(t, nowhere)}, httpapi.ServerOptions{Redis: client, Limits: tight()}))
	}
	passed := 0
	for range 3 {
		for _, s := range replicas {
			passed += passes(t, s, 1)
		}
	}
	if passed != 3 {
		t.Errorf("%d passed over three replicas, want 3", passed)
	}
	ttl := client.PTTL(context.Background(), "repute:rate:127.0.0.1").Val()
	if ttl <= 0 || ttl > 4*time.Minute {
		t.Errorf("the bucket is kept for %s", ttl)
	}
	server.stop()
	for i, s := range replicas {
		if n := passes(t, s, 5); n != 3 {
			t.Errorf("replica %d alone: %d passed, want 3", i, n)
		}
	}
}

// TestSharedRefill: with a real rate the bucket refills, and Redis's wait is
// about one interval.
func TestSharedRefill(t *testing.T) {
	t.Parallel()
	server := startRedis(t)
	client := server.patient(t)
	s := serve(t, api.Options{DB: open(t, nowhere)},
		httpapi.ServerOptions{Redis: client, Limits: httpapi.Limits{Rate: 5, Burst: 1}})
	if n := passes(t, s, 1); n != 1 {
		t.Fatal("the first request is refused")
	}
	waitFor(t, "a token", func() bool { return get(t, s, "/openapi.json").status == http.StatusOK })
}

// A Redis that accepts connections and answers nothing is asked at most once a second; the process counts alone.
func TestFrozenRedisStallsNobody(t *testing.T) {
	t.Parallel()
	server := startRedis(t)
	client, sent := server.client(t), new(commands)
	client.AddHook(sent)
	s := serve(t, api.Options{DB: open(t, nowhere)}, httpapi.ServerOptions{Redis: client, Limits: tight()})
	if err := server.process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	before, began := sent.n.Load(), time.Now()
	if n := passes(t, s, 20); n != 3 {
		t.Errorf("%d passed, want 3", n)
	}
	// After a failure Redis is left alone for a second, so that most requests do not wait for it.
	if n, most := sent.n.Load()-before, 1+int64(time.Since(began)/time.Second); n < 1 || n > most {
		t.Errorf("twenty requests sent %d commands to a frozen Redis, want 1 to %d", n, most)
	}
}

// commands is a hook that counts the scripts that a client has Redis run.
type commands struct{ n atomic.Int64 }

// DialHook implements redis.Hook.
func (*commands) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook implements redis.Hook.
func (c *commands) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if strings.HasPrefix(cmd.Name(), "eval") {
			c.n.Add(1)
		}
		return next(ctx, cmd)
	}
}

// ProcessPipelineHook implements redis.Hook.
func (*commands) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// redisServer is a real Redis of this test.
type redisServer struct {
	addr    string
	process *os.Process
	stop    func()
}

// patient is a client that waits for a Redis on a busy machine: it is its counting that is
// tested.
func (r redisServer) patient(t *testing.T) *redis.Client {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: r.addr, ContextTimeoutEnabled: true, ReadTimeout: 10 * time.Second,
		MaxRetries: -1})
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func (r redisServer) client(t *testing.T) *redis.Client {
	t.Helper()
	client, err := httpapi.OpenRedis("redis://" + r.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func startRedis(t *testing.T) redisServer {
	t.Helper()
	binary, err := exec.LookPath("redis-server")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip("redis-server is not installed")
	}
	addr := freeport.Address(t)
	_, port, _ := net.SplitHostPort(addr)
	dir := t.TempDir()
	cmd := exec.Command(binary, "--bind", "127.0.0.1", "--port", port, "--save", "", "--appendonly", "no",
		"--dir", dir, "--logfile", filepath.Join(dir, "log"))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stopped := false
	stop := func() {
		if !stopped {
			stopped = true
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	}
	t.Cleanup(stop)
	client := redis.NewClient(&redis.Options{Addr: addr})
	defer client.Close()
	waitFor(t, "redis", func() bool { return client.Ping(context.Background()).Err() == nil })
	return redisServer{addr, cmd.Process, stop}
}
