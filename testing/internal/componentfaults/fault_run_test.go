package componentfaults_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/espalier-dev/espalier/internal/component/engine"
	"github.com/espalier-dev/espalier/internal/testenv/resources"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	faultPrefix = "fault.espalier.test"
	// meddled is the annotation that the other actor leaves.
	meddled = "meddler.test/was-here"
	// maxLag is how many reads of a type in a row are stale at most: an operator that waits reads for as long as that takes.
	maxLag = 3
)

// faultWorld is the API server, as clients see it whose requests do not fail.
type faultWorld struct {
	config *rest.Config
	host   string
	http   *http.Client
	client client.Client
}

func newFaultWorld(t testing.TB, config *rest.Config) *faultWorld {
	t.Helper()
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(config, client.Options{Scheme: resources.NewScheme(), HTTPClient: httpClient})
	if err != nil {
		t.Fatal(err)
	}
	host, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		t.Fatal(err)
	}
	return &faultWorld{config: config, host: strings.TrimSuffix(host.String(), "/"), http: httpClient, client: c}
}

// faultPoint is where one run goes wrong. The zero value is nowhere.
type faultPoint struct {
	sort faultSort
	// at is the number of a write. Of a stale read it is the write that is not seen, and resource and lag say which reads do not see it:
	// the first of the type after the write, up to that number.
	at       int
	resource string
	lag      int
	// goesOn: the instance that met with the fault goes on. Otherwise a new one takes over once its request is over.
	goesOn bool
	// what is there, for the name.
	what string
}

func (p faultPoint) String() string {
	name := fmt.Sprintf("%s/%02d %s", p.sort, p.at, strings.ReplaceAll(p.what, "/", "."))
	if p.sort == staleRead {
		name += fmt.Sprintf(" unseen by %d of %s", p.lag, p.resource)
	}
	if p.goesOn {
		name += ", goes on"
	}
	return strings.ReplaceAll(name, " ", "_")
}

// typeHistory is what happened last to the objects of a type.
type typeHistory struct {
	write  int
	before string
	reads  int
}

// faultRun is the platform scenario, from first to last, with at most one fault.
type faultRun struct {
	world *faultWorld
	// id is part of the names of what is not in the namespace of the run.
	id, namespace string
	point         faultPoint
	// operated: operators run by themselves.
	operated bool

	mu sync.Mutex
	// writes are all calls that write, without what differs from run to run.
	writes     []string
	lastDryRun bool
	fired      string
	effective  int
	trace      []string
	violations []string

	ownerID string
	// stored is what the inventory in the cluster names, own what carries the mark of the component, by path.
	stored map[string]bool
	own    map[string]string
	// foreign is what belongs to others, with UID and resource version.
	foreign map[string]string
	// inUse: others have an instance of the type.
	inUse            bool
	creates, deletes map[string]int
	tries            map[string]int

	history map[string]*typeHistory
	// stalePoints are the reads that may be stale.
	stalePoints []faultPoint
}

func newFaultRun(world *faultWorld, id string, point faultPoint) *faultRun {
	return &faultRun{
		world: world, id: id, namespace: "fault-" + id, point: point,
		stored: map[string]bool{}, own: map[string]string{}, foreign: map[string]string{},
		creates: map[string]int{}, deletes: map[string]int{}, tries: map[string]int{},
		history: map[string]*typeHistory{},
	}
}

func (r *faultRun) anonymous(text string) string {
	if r.ownerID != "" {
		text = strings.ReplaceAll(text, r.ownerID, "OWNER")
	}
	return strings.ReplaceAll(strings.ReplaceAll(text, r.namespace, "ns"), r.id, "id")
}

func (r *faultRun) logf(format string, args ...any) {
	r.trace = append(r.trace, r.anonymous(fmt.Sprintf(format, args...)))
}

func (r *faultRun) violated(format string, args ...any) {
	text := r.anonymous(fmt.Sprintf(format, args...))
	r.trace = append(r.trace, "VIOLATION "+text)
	r.violations = append(r.violations, text)
}

// identify learns who the component is.
func (r *faultRun) identify(a *resources.Assembly) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ownerID = ownerIDOf(a)
}

func ownerIDOf(a *resources.Assembly) string {
	kind := resources.GroupVersion.WithKind("Assembly").GroupKind()
	return engine.OwnerID(engine.OwnerText(kind, types.NamespacedName{Namespace: a.Namespace, Name: a.Name}, "", a.UID))
}

// beforeWrite remembers how old an answer must be not to show what is written.
func (r *faultRun) beforeWrite(ctx context.Context, c *apiCall) error {
	if r.point.sort != staleRead || r.point.at != len(r.writes) || r.point.resource != c.resource || c.dryRun {
		return nil
	}
	all := *c
	all.namespace = ""
	_, body, err := r.world.look(ctx, all.collection(), url.Values{"limit": {"1"}})
	if err != nil {
		return err
	}
	var list struct {
		Metadata struct{ ResourceVersion string }
	}
	if err := json.Unmarshal(body, &list); err != nil {
		return err
	}
	r.history[c.resource] = &typeHistory{write: -1, before: list.Metadata.ResourceVersion}
	return nil
}

// beforeRead returns the version at which a read is to be answered.
func (r *faultRun) beforeRead(c *apiCall) (version string, stale bool) {
	h := r.history[c.resource]
	if h == nil || h.write <= 0 {
		return "", false
	}
	h.reads++
	if r.point.sort == "" && h.reads <= maxLag {
		r.stalePoints = append(r.stalePoints, faultPoint{
			sort: staleRead, at: h.write, resource: c.resource, lag: h.reads, what: r.writes[h.write-1],
		})
	}
	hit := r.point.sort == staleRead && r.point.at == h.write && r.point.resource == c.resource && h.reads <= r.point.lag && h.before != ""
	return h.before, hit
}

// afterWrite looks at what a write did, and checks the invariants.
func (r *faultRun) afterWrite(ctx context.Context, c *apiCall, code int, body []byte) {
	r.logf("%s: %d", c, code)
	if c.dryRun {
		return
	}
	key := c.resource + "/" + c.namespace + "/" + c.name
	// Namespaces are no objects of the component; whether they are there is asked once per process.
	if c.resource != "namespaces" && (c.method == http.MethodPost || c.method == http.MethodDelete) {
		r.tries[c.method+" "+key]++
	}
	if code >= 300 {
		return
	}
	r.effective++
	before := ""
	if h := r.history[c.resource]; h != nil && h.write < 0 {
		before = h.before
	}
	r.history[c.resource] = &typeHistory{write: len(r.writes), before: before}
	if c.resource == "assemblies" {
		r.checkInventory(ctx, body)
		return
	}
	if _, is := r.foreign[key]; is {
		r.violated("L4: %s writes to what belongs to others", c)
	}
	switch c.method {
	case http.MethodDelete:
		r.deletes[key]++
		r.checkDelete(c, key)
		return
	case http.MethodPost:
		r.creates[key]++
	}
	if labelOf(body) != r.ownerID {
		return
	}
	path := c.path
	if c.method == http.MethodPost {
		path += "/" + c.name
	}
	r.own[key] = path
	if !r.stored[key] {
		r.violated("L2: %s, which the inventory does not name", c)
	}
}

func (r *faultRun) checkDelete(c *apiCall, key string) {
	if !r.stored[key] {
		r.violated("L4: %s, which the inventory does not name", c)
	}
	var options struct{ Preconditions struct{ UID string } }
	if err := json.Unmarshal(c.body, &options); err != nil || options.Preconditions.UID == "" {
		r.violated("L4: %s without a UID (%v)", c, err)
	}
	if c.resource == "customresourcedefinitions" && r.inUse {
		r.violated("L5: %s while others use it", c)
	}
}

func labelOf(body []byte) string {
	var object struct {
		Metadata struct{ Labels map[string]string }
	}
	if json.Unmarshal(body, &object) != nil {
		return ""
	}
	return object.Metadata.Labels[faultPrefix+"/owner-id"]
}

var resourceOfKind = map[string]string{
	"ConfigMap": "configmaps", "Role": "roles", "RoleBinding": "rolebindings", "Gadget": "gadgets",
	"CustomResourceDefinition": "customresourcedefinitions",
}

// checkInventory takes in an inventory that was just stored. What it names no more must be gone.
func (r *faultRun) checkInventory(ctx context.Context, body []byte) {
	a := &resources.Assembly{}
	if err := json.Unmarshal(body, a); err != nil {
		r.violated("the resource cannot be read: %v", err)
		return
	}
	r.stored = map[string]bool{}
	if a.DeletionTimestamp == nil || len(a.Finalizers) > 0 {
		for _, record := range a.Status.Inventory {
			r.stored[resourceOfKind[record.Kind]+"/"+record.Namespace+"/"+record.Name] = true
		}
	}
	for _, key := range slices.Sorted(maps.Keys(r.own)) {
		if r.stored[key] {
			continue
		}
		code, found, err := r.world.look(ctx, r.own[key], nil)
		switch {
		case err != nil:
			r.violated("%s cannot be read: %v", key, err)
		case code == http.StatusOK && labelOf(found) == r.ownerID:
			r.violated("L2: the inventory does not name %s any more, which is still there", key)
		default:
			delete(r.own, key)
		}
	}
}

// meddle is what another actor does to the object of a call.
func (r *faultRun) meddle(ctx context.Context, c *apiCall) error {
	if c.resource == "namespaces" {
		return nil
	}
	if c.method != http.MethodPost || c.dryRun {
		path := strings.TrimSuffix(c.path, "/"+c.sub)
		if c.dryRun {
			// The trial proves the fence of the definition.
			path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/" + c.resource + "." + c.group
		}
		patch := map[string]any{"metadata": map[string]any{"annotations": map[string]string{meddled: "yes"}}}
		code, body, err := r.world.ask(ctx, http.MethodPatch, path, url.Values{"fieldManager": {"meddler"}}, "application/merge-patch+json", patch)
		if err != nil || code >= 300 && code != http.StatusNotFound {
			return fmt.Errorf("patch of %s: %d %s %v", path, code, body, err)
		}
		return nil
	}
	var object map[string]any
	if err := json.Unmarshal(c.body, &object); err != nil {
		return err
	}
	metadata := object["metadata"].(map[string]any)
	for _, field := range []string{"labels", "annotations"} {
		if pairs, ok := metadata[field].(map[string]any); ok {
			maps.DeleteFunc(pairs, func(key string, _ any) bool { return strings.HasPrefix(key, faultPrefix+"/") })
		}
	}
	code, body, err := r.world.ask(ctx, http.MethodPost, c.path, url.Values{"fieldManager": {"meddler"}}, "application/json", object)
	if err != nil || code >= 300 && code != http.StatusConflict {
		return fmt.Errorf("create of %s: %d %s %v", c.object(), code, body, err)
	}
	r.creates[c.resource+"/"+c.namespace+"/"+c.name]++
	return nil
}
