package command_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/internal/testenv/controlplane/controlplanetest"
)

// waves are the manifests of a component of three waves. Somebody makes each object ready.
func waves(namespace string) string {
	var all strings.Builder
	for wave := range 3 {
		fmt.Fprintf(&all, `---
apiVersion: v1
kind: ConfigMap
metadata:
  name: wave-%d
  namespace: %s
  annotations:
    espalier.dev/apply-order: "%d"
    espalier.dev/delete-order: "%d"
    espalier.dev/ready-when: object.data.ready == 'yes'
`, wave, namespace, wave, -wave)
	}
	return all.String()
}

// trial is a namespace, and how to run the command in it as a process.
type trial struct {
	client    client.Client
	namespace string
	// kubeConfig and manifests are files.
	kubeConfig, manifests string
}

func newTrial(t *testing.T) *trial {
	t.Helper()
	config, namespace, dir := plane.Config(t), plane.Namespace(t), t.TempDir()
	c, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := &trial{c, namespace, filepath.Join(dir, "kubeconfig"), filepath.Join(dir, "waves.yaml")}
	if err := writeKubeConfig(config, namespace, r.kubeConfig); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(r.manifests, []byte(waves(namespace)), 0o600); err != nil {
		t.Fatal(err)
	}
	return r
}

// process is the command as a process.
func (r *trial) process(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(self, append([]string{"component"}, args...)...)
	c.Env = append(os.Environ(), runsCommand+"=1", "KUBECONFIG="+r.kubeConfig, "TERM=xterm")
	return c
}

// start starts a process that may be killed.
func (r *trial) start(t *testing.T, args ...string) (c *exec.Cmd, out *terminal) {
	t.Helper()
	c, out = r.process(t, args...), &terminal{}
	c.Stdout, c.Stderr = out, out
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	return c, out
}

// kill kills a process. Who waits for its Lease waits as long as that says. Only now it says less than a busy machine
// needs to renew it.
func (r *trial) kill(t *testing.T, c *exec.Cmd) {
	t.Helper()
	_ = c.Process.Kill()
	_ = c.Wait()
	for _, lease := range r.leases(t) {
		patch := client.RawPatch(types.MergePatchType, []byte(`{"spec": {"leaseDurationSeconds": 2}}`))
		if err := r.client.Patch(t.Context(), &lease, patch); err != nil {
			t.Fatal(err)
		}
	}
}

// leases returns the Leases of the commands; there is one at least.
func (r *trial) leases(t *testing.T) []coordinationv1.Lease {
	t.Helper()
	leases := &coordinationv1.LeaseList{}
	if err := r.client.List(t.Context(), leases, client.InNamespace(r.namespace)); err != nil {
		t.Fatal(err)
	}
	if len(leases.Items) == 0 {
		t.Fatal("there is no Lease, want one")
	}
	return leases.Items
}

func (r *trial) get(t *testing.T, wave int) *corev1.ConfigMap {
	object := &corev1.ConfigMap{}
	key := client.ObjectKey{Namespace: r.namespace, Name: fmt.Sprintf("wave-%d", wave)}
	if err := r.client.Get(t.Context(), key, object); err != nil {
		return nil
	}
	return object
}

func (r *trial) patch(t *testing.T, wave int, patch string) {
	t.Helper()
	object := &corev1.ConfigMap{}
	object.Namespace, object.Name = r.namespace, fmt.Sprintf("wave-%d", wave)
	err := r.client.Patch(t.Context(), object, client.RawPatch(types.MergePatchType, []byte(patch)))
	if err != nil {
		t.Fatal(err)
	}
}

func exitCode(err error) int {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode()
	}
	return 0
}

// A command that is killed in each wave of an apply, and in each of a delete, leaves nothing that the next one does not
// finish: no object is created twice, none is left, and the Lease is free again.
func TestKilledInEachWave(t *testing.T) {
	r := newTrial(t)
	apply := []string{"apply", "shop", r.manifests}
	uids := map[int]types.UID{}
	for wave := range 3 {
		c, out := r.start(t, apply...)
		controlplanetest.Eventually(t, "the wave does not begin", func(context.Context) error {
			if r.get(t, wave) == nil {
				return fmt.Errorf("wave %d has not begun, the command says:\n%s", wave, out)
			}
			return nil
		})
		if r.get(t, wave+1) != nil {
			t.Errorf("wave %d has begun before wave %d is ready", wave+1, wave)
		}
		r.kill(t, c)
		uids[wave] = r.get(t, wave).UID
		r.patch(t, wave, `{"data": {"ready": "yes"}}`)
	}
	if out, err := r.process(t, apply...).CombinedOutput(); err != nil {
		t.Fatalf("the last run ends with %v:\n%s", err, out)
	}
	for wave, uid := range uids {
		if got := r.get(t, wave); got == nil || got.UID != uid {
			t.Errorf("the object of wave %d is %v, want the one with the UID %s that was created first", wave, got, uid)
		}
		r.patch(t, wave, `{"metadata": {"finalizers": ["example.com/kept"]}}`)
	}
	remove := []string{"delete", "shop"}
	for wave := 2; wave >= 0; wave-- {
		c, out := r.start(t, remove...)
		controlplanetest.Eventually(t, "the object is not deleted", func(context.Context) error {
			if object := r.get(t, wave); object == nil || object.DeletionTimestamp == nil {
				return fmt.Errorf("the object of wave %d is not being deleted, the command says:\n%s", wave, out)
			}
			return nil
		})
		r.kill(t, c)
		r.patch(t, wave, `{"metadata": {"finalizers": null}}`)
	}
	if out, err := r.process(t, remove...).CombinedOutput(); err != nil {
		t.Fatalf("the last run ends with %v:\n%s", err, out)
	}
	for wave := range 3 {
		if object := r.get(t, wave); object != nil {
			t.Errorf("the object of wave %d is left: %v", wave, object)
		}
	}
	secret := &corev1.Secret{}
	err := r.client.Get(t.Context(), client.ObjectKey{Namespace: r.namespace, Name: "espalier-release-shop"}, secret)
	if !apierrs.IsNotFound(err) {
		t.Errorf("reading the Secret of the component gives %v, want that it is gone", err)
	}
}

// A command that is interrupted says so, and how to go on. One that runs keeps others from running.
func TestInterrupted(t *testing.T) {
	r := newTrial(t)
	c, out := r.start(t, "apply", "shop", r.manifests)
	controlplanetest.Eventually(t, "the wave does not begin", func(context.Context) error {
		if r.get(t, 0) == nil {
			return fmt.Errorf("wave 0 has not begun, the command says:\n%s", out)
		}
		return nil
	})
	second, err := r.process(t, "apply", "shop", r.manifests).CombinedOutput()
	want := fmt.Sprintf(`another command runs for the component "shop": that of .*, process %d `, c.Process.Pid)
	if exitCode(err) != 3 || !regexp.MustCompile(want).Match(second) {
		t.Errorf("a second command ends with %v, want the exit code 3 and %q:\n%s", err, want, second)
	}
	if err := c.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	err = c.Wait()
	if exitCode(err) != 130 || !strings.Contains(out.String(), "the same command goes on from there") {
		t.Errorf("the command ends with %v, want the exit code 130 and how to go on:\n%s", err, out)
	}
	// Nobody has to wait for its Lease.
	r.makeReady(t)
	if third, err := r.process(t, "apply", "shop", r.manifests).CombinedOutput(); err != nil ||
		strings.Contains(string(third), "waiting to see") {
		t.Errorf("the next command ends with %v, want that it begins at once:\n%s", err, third)
	}
}

// makeReady makes the object of each wave ready once it exists, until the test ends.
func (r *trial) makeReady(t *testing.T) {
	var all sync.WaitGroup
	t.Cleanup(all.Wait)
	for wave := range 3 {
		all.Go(func() {
			object := &corev1.ConfigMap{}
			object.Namespace, object.Name = r.namespace, fmt.Sprintf("wave-%d", wave)
			patch := client.RawPatch(types.MergePatchType, []byte(`{"data": {"ready": "yes"}}`))
			err := wait.PollUntilContextCancel(t.Context(), 50*time.Millisecond, true,
				func(ctx context.Context) (bool, error) {
					err := r.client.Patch(ctx, object, patch)
					return err == nil, client.IgnoreNotFound(err)
				})
			if err != nil && t.Context().Err() == nil {
				t.Errorf("could not make the object of wave %d ready: %v", wave, err)
			}
		})
	}
}

// A component in a namespace that is being deleted is deleted, though no Lease can be made there. Then the namespace goes.
func TestDeleteInNamespaceThatEnds(t *testing.T) {
	r := newTrial(t)
	r.makeReady(t)
	if out, err := r.process(t, "apply", "shop", r.manifests).CombinedOutput(); err != nil {
		t.Fatalf("apply ends with %v:\n%s", err, out)
	}
	namespace := &corev1.Namespace{}
	namespace.Name = r.namespace
	if err := r.client.Delete(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	if out, err := r.process(t, "delete", "shop").CombinedOutput(); err != nil {
		t.Errorf("delete ends with %v, want that it deletes the component:\n%s", err, out)
	}
	controlplanetest.Eventually(t, "the namespace does not go", func(context.Context) error {
		err := r.client.Get(t.Context(), client.ObjectKeyFromObject(namespace), namespace)
		if !apierrs.IsNotFound(err) {
			return fmt.Errorf("the namespace is still there, with %v: %v", err, namespace.Status.Conditions)
		}
		return nil
	})
}

// terminal collects what a process writes, and can be read meanwhile.
type terminal struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (o *terminal) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.all.Write(p)
}

func (o *terminal) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.all.String()
}

// onTerminal runs an apply on a terminal, makes the waves ready one after the other, and returns what it shows.
func (r *trial) onTerminal(t *testing.T, env ...string) string {
	t.Helper()
	c := r.process(t, "apply", "shop", r.manifests)
	c.Env = append(c.Env, env...)
	file, err := pty.StartWithSize(c, &pty.Winsize{Rows: 24, Cols: 60})
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	shown, copied := &terminal{}, make(chan struct{})
	go func() {
		defer close(copied)
		_, _ = io.Copy(shown, file) // ends with an error when the process does
	}()
	for wave := range 3 {
		controlplanetest.Eventually(t, "the progress is not shown", func(context.Context) error {
			if want := fmt.Sprintf("Wave %d of 3", wave+1); !strings.Contains(shown.String(), want) {
				return fmt.Errorf("the terminal does not show %q:\n%q", want, shown)
			}
			return nil
		})
		r.patch(t, wave, `{"data": {"ready": "yes"}}`)
	}
	if err := c.Wait(); err != nil {
		t.Errorf("the command ends with %v:\n%s", err, shown)
	}
	<-copied
	return shown.String()
}

// On a terminal the progress is one line with a bar, which is drawn again and fits, in colours unless NO_COLOR is set.
func TestProgressOnTerminal(t *testing.T) {
	for _, tc := range []struct {
		env     []string
		colours bool
	}{{nil, true}, {[]string{"NO_COLOR=1"}, false}} {
		shown := newTrial(t).onTerminal(t, tc.env...)
		lines := strings.Split(shown, "\r\x1b[2K")
		text := regexp.MustCompile(`\x1b\[[0-9]*m`)
		if got := text.MatchString(shown); got != tc.colours {
			t.Errorf("with the environment %q, it has colours: %v, want %v:\n%q", tc.env, got, tc.colours, shown)
		}
		for _, want := range []string{
			"[......", "] 0/3 ", "[######..............] 1/3 ", "[#############.......] 2/3 ", "[####################] 3/3 All",
		} {
			if !strings.Contains(shown, want) {
				t.Errorf("the terminal does not show %q:\n%q", want, shown)
			}
		}
		for _, line := range lines {
			line, _, _ = strings.Cut(line, "\r\n")
			if plain := []rune(text.ReplaceAllString(line, "")); len(plain) > 60 {
				t.Errorf("the line %q has %d columns, want at most 60", string(plain), len(plain))
			}
		}
	}
}

// A command that deals with some objects and is killed meanwhile forgets none of the others: all are deleted with the
// component.
func TestKilledKeepsOthers(t *testing.T) {
	r := newTrial(t)
	r.makeReady(t)
	if out, err := r.process(t, "apply", "shop", r.manifests).CombinedOutput(); err != nil {
		t.Fatalf("the first run ends with %v:\n%s", err, out)
	}
	uid := r.get(t, 0).UID
	one := filepath.Join(t.TempDir(), "one.yaml")
	content := strings.ReplaceAll(waves(r.namespace), "wave-1", "wave-3")
	if err := os.WriteFile(one, []byte(strings.Split(content, "---\n")[2]), 0o600); err != nil {
		t.Fatal(err)
	}
	c, out := r.start(t, "apply", "shop", one, "--prune=false", "--lease-duration=20s")
	controlplanetest.Eventually(t, "the object is not created", func(context.Context) error {
		if r.get(t, 3) == nil {
			return fmt.Errorf("the other object is not there, the command says:\n%s", out)
		}
		return nil
	})
	if lasts := ptr.Deref(r.leases(t)[0].Spec.LeaseDurationSeconds, 0); lasts != 20 {
		t.Errorf("the Lease lasts for %d seconds, want 20", lasts)
	}
	r.kill(t, c)
	for wave := range 4 {
		if got := r.get(t, wave); got == nil || got.DeletionTimestamp != nil || wave == 0 && got.UID != uid {
			t.Errorf("the object %d is %v, want that it stays as it was", wave, got)
		}
	}
	if out, err := r.process(t, "delete", "shop").CombinedOutput(); err != nil {
		t.Fatalf("the delete ends with %v:\n%s", err, out)
	}
	for wave := range 4 {
		if object := r.get(t, wave); object != nil {
			t.Errorf("the object %d is left: %v", wave, object)
		}
	}
}
