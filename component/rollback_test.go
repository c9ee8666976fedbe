package component_test

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/component"
	"github.com/espalier-dev/espalier/internal/testenv/resources"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// rewritten is the content of a bucket of an inventory after others changed its version, its header and its records.
func rewritten(t *testing.T, bucket []byte, version string, change func(line string) string) []byte {
	t.Helper()
	var body bytes.Buffer
	head, lines := linesOf(t, bucket)
	writer := gzip.NewWriter(&body)
	for _, line := range lines {
		_, _ = io.WriteString(writer, change(line)+"\n")
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	content := change(head) + "\n" + body.String()
	return fmt.Appendf(nil, "espalier-inventory/%s %x\n%s", version, sha256.Sum256([]byte(content)), content)
}

// linesOf returns the header and the records of a bucket.
func linesOf(t *testing.T, bucket []byte) (head string, lines []string) {
	t.Helper()
	parts := bytes.SplitN(bucket, []byte("\n"), 3)
	body, err := gzip.NewReader(bytes.NewReader(parts[2]))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(body)
	if err != nil {
		t.Fatal(err)
	}
	return string(parts[1]), strings.FieldsFunc(string(text), func(r rune) bool { return r == '\n' })
}

// inASecret is a rolled out component whose inventory is in Secrets.
func inASecret(t *testing.T) *operated {
	house, _, _ := newHouse()
	house.Finalizers = []string{componentFinalizer}
	node := assembling()
	node.Inventory = component.Inventory{Kind: "Secret"}
	o := newOperated(t, node, house, nil)
	o.untilIdle(t)
	return o
}

// startAgain forgets what the process has in memory.
func (o *operated) startAgain() {
	node := assembling()
	node.Inventory = component.Inventory{Kind: "Secret"}
	o.root = component.NewComponentRoot(componentPrefix, nil, component.Options[*resources.Assembly]{Config: o.root.Config})
	o.root.Reconciler = node
}

// buckets returns the Secrets of the inventory.
func (o *operated) buckets(t *testing.T) []corev1.Secret {
	t.Helper()
	var list corev1.SecretList
	if err := o.client.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// rewrite changes all buckets as an operator of another release.
func (o *operated) rewrite(t *testing.T, version string, change func(line string) string) {
	t.Helper()
	for _, secret := range o.buckets(t) {
		secret.Data["inventory"] = rewritten(t, secret.Data["inventory"], version, change)
		if err := o.client.Update(t.Context(), &secret); err != nil {
			t.Fatal(err)
		}
	}
}

// TestInventoryAfterARollback: a later release of the operator added a member to the headers and to the records of an
// inventory in Secrets. The release of now does its work without it, and keeps it.
func TestInventoryAfterARollback(t *testing.T) {
	const (
		members = `"seen":[1.50,{"by":"a\u003cb"}]`
		changed = `"applyOrder":5`
	)
	o := inASecret(t)
	o.rewrite(t, "1", func(line string) string { return strings.TrimSuffix(line, "}") + "," + members + "}" })
	o.startAgain()
	o.untilIdle(t)

	house := o.house(t)
	walls := partOf("default", "walls", "5")
	o.change(t, house, func() { house.Generation++; house.SetObjects(walls, partOf("default", "door", "0")) })
	o.untilIdle(t)
	if ready := o.house(t).Status.Conditions[0]; ready.Status != "True" || o.house(t).Status.Revision != 2 {
		t.Fatalf("the condition is %v, want Ready of revision 2", ready)
	}
	records := map[string]string{}
	for _, secret := range o.buckets(t) {
		head, lines := linesOf(t, secret.Data["inventory"])
		if !strings.HasSuffix(head, ","+members+"}") {
			t.Errorf("the header of %s is %s, want it to have %s still", secret.Name, head, members)
		}
		for _, line := range lines {
			for _, name := range []string{"walls", "roof", "door"} {
				if strings.Contains(line, `"name":"`+name+`"`) {
					records[name] = line
				}
			}
		}
	}
	kept, added := records["walls"], records["door"]
	keeps := strings.Contains(kept, changed) && strings.HasSuffix(kept, ","+members+"}")
	if len(records) != 2 || !keeps || added == "" || strings.Contains(added, "seen") {
		t.Errorf("the records are %q, want the walls with %s and %s, and the door without", records, changed, members)
	}

	if err := o.client.Delete(t.Context(), house); err != nil {
		t.Fatal(err)
	}
	for range 8 {
		if _, err := o.reconcile(t, time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	err := o.client.Get(t.Context(), client.ObjectKeyFromObject(walls), walls)
	if left := o.buckets(t); !apierrs.IsNotFound(err) || len(left) > 0 {
		t.Errorf("after the deletion, reading the walls ends with %v, and %d Secrets are left, want NotFound and none", err, len(left))
	}
}

// TestInventoryOfALaterFormat: the operator touches nothing if an inventory has a format that it does not know, or a
// member inside of another one, which it would lose.
func TestInventoryOfALaterFormat(t *testing.T) {
	for name, test := range map[string]struct {
		version, from, to, want string
	}{
		"format":       {version: "2", want: `its format "2" is not known`},
		"inner member": {"1", `"kind":`, `"managedTypes":[{"seen":1}],"kind":`, `json: unknown field "seen"`},
	} {
		t.Run(name, func(t *testing.T) {
			o := inASecret(t)
			o.rewrite(t, test.version, func(line string) string { return strings.Replace(line, test.from, test.to, 1) })
			before := o.buckets(t)
			o.startAgain()
			house := o.house(t)
			o.change(t, house, func() { house.SetObjects(partOf("default", "door", "0")) })
			if _, err := o.reconcile(t, time.Minute); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("the request ends with %v, want %s", err, test.want)
			}
			o.get(t, "walls", &corev1.ConfigMap{})
			for i, secret := range o.buckets(t) {
				if secret.ResourceVersion != before[i].ResourceVersion {
					t.Errorf("%s was written, want it as it was", secret.Name)
				}
			}
		})
	}
}
