package plugins_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/plugins"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// token is a secret of somebody else.
var token = &corev1.Secret{
	ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "token"}, Data: map[string][]byte{"token": []byte("abc")},
}

// Each attack is made by one owner. Its condition says what is wrong, its object stays, and another owner gets what it
// asks for.
func TestAttacksByAnswers(t *testing.T) {
	attacks := map[string]struct {
		do, reason, text string
	}{
		"a panic":              {"panic", plugins.ReasonPluginUnavailable, "panicked: at the disco"},
		"an error":             {"fail", plugins.ReasonPluginUnavailable, "the disk is full"},
		"an unknown deed":      {"no such thing", plugins.ReasonInvalid, "there is no deed no such thing"},
		"not ready":            {"wait", "NoDisk", "there is no disk"},
		"another namespace":    {"other namespace", plugins.ReasonAnswerRefused, `in the namespace "other"`},
		"cluster-scoped":       {"cluster role", plugins.ReasonAnswerRefused, `is "ClusterRole" of "rbac.`},
		"a huge object":        {"huge", plugins.ReasonPluginUnavailable, "larger than 4194304 bytes"},
		"very many objects":    {"very many", plugins.ReasonPluginUnavailable, "larger than 4194304 bytes"},
		"a thousand objects":   {"a thousand", plugins.ReasonAnswerRefused, "there are 1000 dependents"},
		"an owner reference":   {"owner reference", plugins.ReasonAnswerRefused, `"ownerReferences" in metadata`},
		"a label of ours":      {"label", plugins.ReasonAnswerRefused, `"espalier.dev/item" in metadata.labels`},
		"a secret that exists": {"secret of others", "AlreadyExists", "token"},
		"a secret, read": {
			"read secret of others", plugins.ReasonAnswerRefused, "does not allow plugins to read",
		},
		"an object of another owner": {
			"that of tool", "AlreadyExists", "tool-config",
		},
	}
	_, host := withPlugin(t, "answers")
	w := worldOf(t, host, token, widget("tool"))
	w.ask("tool", "value=mine")
	w.until("tool", "Ready")
	for name, attack := range attacks {
		t.Run(name, func(t *testing.T) {
			w.t = t
			owner := "w-" + strings.ReplaceAll(attack.do, " ", "-")
			if err := w.Create(t.Context(), widget(owner)); err != nil {
				t.Fatal(err)
			}
			w.ask(owner, "value=x")
			w.until(owner, "Ready")
			w.ask(owner, "do="+attack.do)
			found := w.until(owner, attack.reason)
			if !strings.Contains(found.Message, attack.text) || len(found.Message) > 1024 {
				t.Errorf("the condition says %q, want a short text with %q", found.Message, attack.text)
			}
			if found.Status != metav1.ConditionFalse {
				t.Errorf("the condition is %s, want False", found.Status)
			}
			kept := &corev1.ConfigMap{}
			gone := attack.reason == "AlreadyExists" && attack.do == "secret of others"
			if has := w.has(kept, owner+"-config"); !gone && (!has || kept.Data["value"] != "x") {
				t.Errorf("the object of the answer before is there: %v, with %v, want it as it was", has, kept.Data)
			}
			w.ask(owner, "value=y")
			w.until(owner, "Ready")
		})
	}
	w.t = t
	mine := &corev1.ConfigMap{}
	if !w.has(mine, "tool-config") || mine.Data["value"] != "mine" {
		t.Errorf("the object of the other owner has %v, want it as it was", mine.Data)
	}
	theirs := &corev1.Secret{}
	if !w.has(theirs, "token") || string(theirs.Data["token"]) != "abc" || len(theirs.Data) != 1 {
		t.Errorf("the secret of somebody else has %v, want it as it was", theirs.Data)
	}
	if w.has(&rbacv1.ClusterRole{}, "admin-of-all") {
		t.Error("there is a cluster role, want none")
	}
}

// The process of the plugin ends or hangs. Who was asked about before needs no plugin, and who asks later gets an
// answer when it runs again.
func TestAttacksOnTheProcess(t *testing.T) {
	for name, text := range map[string]string{
		"exit": "exit status 4", "die": "exit status 2", "hang": "",
	} {
		t.Run(name, func(t *testing.T) {
			_, host := withPlugin(t, "process")
			if name == "hang" {
				host.Limits.Call = 2 * time.Second
			}
			w := worldOf(t, host, widget("tool"))
			w.ask("tool", "value=mine")
			w.until("tool", "Ready")
			w.ask("gadget", "do="+name)
			found := w.until("gadget", plugins.ReasonPluginUnavailable)
			late := found.Message == "databases: it has not answered within 2s"
			if text == "" && !late || text != "" && !saysThatItEnded(found, text) {
				t.Errorf("the condition says %q, want what has happened", found.Message)
			}
			if found := w.until("tool", "Ready"); found.Status != metav1.ConditionTrue {
				t.Errorf("the other resource is %s, want True", found.Status)
			}
			w.ask("tool", "value=again")
			w.until("tool", "Ready")
			w.ask("gadget", "value=again")
			w.until("gadget", "Ready")
		})
	}
}

// saysThatItEnded reports whether a condition says that the plugin has ended: by what the call has found, or by what
// the host has.
func saysThatItEnded(condition metav1.Condition, how string) bool {
	return condition.Message == "databases: it cannot be reached" ||
		condition.Message == "databases does not run: it has ended: "+how
}

// A program that does not start as it should is not asked, and the condition says why.
func TestAttacksAtTheStart(t *testing.T) {
	for mode, text := range map[string]string{
		"exits":            "provides database/postgres (databases does not run: it has ended: exit status 3)",
		"never starts":     "timeout while waiting for plugin to start",
		"another protocol": "incompatible API version with plugin. Plugin version: 2, Client versions: [1]",
		"another address":  "it does not listen on a Unix socket in the folder that it was given",
		"a certificate":    "it does not listen on the Unix socket that it has named",
		"a long line":      "Unrecognized remote plugin message",
	} {
		t.Run(mode, func(t *testing.T) {
			_, host := withPlugin(t, mode)
			host.Limits.Start = patience
			if mode == "never starts" {
				host.Limits.Start = time.Second
			}
			w := worldOf(t, host)
			if found := w.until("gadget", plugins.ReasonNoPlugin); !strings.Contains(found.Message, text) {
				t.Errorf("the condition says %q, want %q", found.Message, text)
			}
		})
	}
}

// A plugin that writes without end is asked as before, and little of it is logged.
func TestFlood(t *testing.T) {
	_, host := withPlugin(t, "flood")
	w := worldOf(t, host)
	began := time.Now()
	w.ask("gadget", "do=flood")
	w.until("gadget", "Ready")
	w.untilLogged("the plugin has written more than is logged")
	w.ask("gadget", "value=after")
	w.until("gadget", "Ready")
	size, took := len(w.logged.String()), time.Since(began)
	if most := (2 + int(took/time.Second)) * 64 << 10; size > most {
		t.Errorf("%d bytes were logged in %s, want at most %d", size, took, most)
	}
}

// A plugin has no environment but its own.
func TestEnvironment(t *testing.T) {
	t.Setenv("OPERATOR_SECRET", "do not tell")
	_, host := withPlugin(t, "environment")
	w := worldOf(t, host)
	w.ask("gadget", "do=environment")
	w.until("gadget", "Ready")
	object := &corev1.ConfigMap{}
	w.has(object, "gadget-config")
	for _, line := range strings.Split(object.Data["environment"], "\n") {
		name, _, _ := strings.Cut(line, "=")
		switch name {
		case modeEnvironment, "ESPALIER_PLUGIN", "PLUGIN_MIN_PORT", "PLUGIN_MAX_PORT", "PLUGIN_PROTOCOL_VERSIONS",
			"PLUGIN_UNIX_SOCKET_DIR":
		default:
			t.Errorf("the plugin has the environment variable %s, want only its own", line)
		}
	}
}

// A program is trusted as the operator is: it reads what the operator can read.
func TestProgramReadsTheToken(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("the token of the operator"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, host := withPlugin(t, "token")
	w := worldOf(t, host)
	w.ask("gadget", "do=read a file", "value="+file)
	w.until("gadget", "Ready")
	object := &corev1.ConfigMap{}
	if w.has(object, "gadget-config"); object.Data["text"] != "the token of the operator" {
		t.Errorf("the plugin has read %q, want it to read what the operator can: docs/security.md says so", object.Data)
	}
}

// What a plugin has started ends with it, and what has left its group does not hold up the host.
func TestForks(t *testing.T) {
	for do, ends := range map[string]bool{"fork": true, "fork away": false} {
		t.Run(do, func(t *testing.T) {
			_, host := withPlugin(t, "forks")
			w := worldOf(t, host, widget("tool"))
			w.ask("gadget", "do="+do)
			w.until("gadget", "Ready")
			object := &corev1.ConfigMap{}
			w.has(object, "gadget-config")
			pid, err := strconv.Atoi(object.Data["pid"])
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGKILL) })
			w.ask("tool", "do=exit")
			w.until("tool", plugins.ReasonPluginUnavailable)
			w.ask("gadget", "value=again")
			w.until("gadget", "Ready")
			gone := errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) || isZombie(pid)
			if gone != ends {
				t.Errorf("the process that the plugin has started is gone: %v, want %v", gone, ends)
			}
		})
	}
}

// isZombie reports whether a process has ended and nobody has waited for it.
func isZombie(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && strings.Contains(string(text), ") Z ")
}

// A plugin that needs more memory than it may have ends, and not the operator.
func TestMemory(t *testing.T) {
	if memoryOfTests < 0 {
		t.Skip("the race detector needs more memory than a bound allows")
	}
	_, host := withPlugin(t, "memory")
	host.Limits.Memory = 512 << 20
	w := worldOf(t, host)
	w.ask("gadget", "do=memory")
	found := w.until("gadget", plugins.ReasonPluginUnavailable)
	if !saysThatItEnded(found, "exit status 2") {
		t.Errorf("the condition says %q, want that the plugin has ended", found.Message)
	}
	w.untilLogged("exit status 2")
}

// A plugin whose answer is another one each time is damped: a write does not bring about the next one for ever.
func TestAnswerThatChanges(t *testing.T) {
	_, host := withPlugin(t, "changes")
	w := worldOf(t, host)
	w.until("gadget", "Ready") // the plugin runs
	w.ask("gadget", "do=changes")
	// The time is that of the requests, so it does not matter how long they take.
	now := time.Now()
	for range 100 {
		now = now.Add(10 * time.Millisecond)
		_, _ = w.onceAt("gadget", now) // an error says that writes are delayed
	}
	object := &corev1.ConfigMap{}
	w.has(object, "gadget-config")
	if count, err := strconv.Atoi(object.Data["count"]); err != nil || count > 20 {
		t.Errorf("a hundred requests within a second have written %q as the number of calls (%v), want few",
			object.Data["count"], err)
	}
}
