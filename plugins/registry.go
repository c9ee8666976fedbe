package plugins

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/espalier-dev/espalier/internal/message"
	"github.com/espalier-dev/espalier/plugins/internal/answer"
	"github.com/espalier-dev/espalier/plugins/internal/protocol"
)

// caller asks a plugin.
type caller interface {
	Dependents(ctx context.Context, request *protocol.DependentsRequest) (*protocol.DependentsResponse, error)
}

// provider is a plugin as far as it is known.
type provider struct {
	// name is the file of a program, the socket of a sidecar, or the category of a plugin in the process.
	name string
	// file is the name of the program; empty for others.
	file string
	// identity changes when the same request may have another answer.
	identity string
	// started orders providers by when they began to run.
	started int
	// connections counts how many times it was started.
	connections int
	// provided is what it has said that it provides. If it has never served, that is empty, and bound all that is
	// known.
	provided answer.Provided
	bound    answer.Bound
	// beyond are the capabilities that it claims as well, and must not provide.
	beyond []string
	// caller is nil while it does not run, and why says why not.
	caller caller
	why    string
}

// registry knows the plugins. It is safe for concurrent use.
type registry struct {
	// prefer are the names of providers, the first choice first.
	prefer []string

	mu        sync.Mutex
	providers map[string]*provider
	// starting are the providers that were not tried yet, with what they may provide.
	starting map[string]answer.Bound
	begun    bool
	settled  bool
	// runs is true once the host was started.
	runs bool
	// started counts how many times a provider began to run.
	started  int
	watchers map[*watcher]bool
}

// watcher is told when what is known of a category changes.
type watcher struct {
	changed func(category string)
}

func newRegistry(prefer []string) *registry {
	return &registry{
		prefer: prefer, providers: map[string]*provider{}, starting: map[string]answer.Bound{},
		watchers: map[*watcher]bool{},
	}
}

// watch has changed called for each category of which something changes, until the returned function is called.
func (r *registry) watch(changed func(category string)) (stop func()) {
	w := &watcher{changed: changed}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.watchers[w] = true
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.watchers, w)
	}
}

// allCategories stands for each category.
const allCategories = "*"

// tell tells the watchers of a change.
func (r *registry) tell(categories ...string) {
	r.mu.Lock()
	watchers := slices.Collect(maps.Keys(r.watchers))
	r.mu.Unlock()
	for _, w := range watchers {
		for _, category := range slices.Compact(categories) {
			w.changed(category)
		}
	}
}

// run notes that the host was started.
func (r *registry) run() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.runs = true
}

// expect notes that a provider is about to be started, and what it may provide.
func (r *registry) expect(key string, bound answer.Bound) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.starting[key] = bound
}

// settle notes that each plugin that there is now is known. It reports whether all were tried for the first time.
func (r *registry) settle() bool {
	r.mu.Lock()
	r.begun = true
	first := !r.settled && len(r.starting) == 0
	r.settled = r.settled || first
	r.mu.Unlock()
	if first {
		r.tell(allCategories)
	}
	return first
}

// set notes how a plugin is. A provider without a caller keeps what it provided before.
func (r *registry) set(key string, next provider) {
	r.mu.Lock()
	before := r.providers[key]
	if before != nil && next.caller == nil && next.provided.Category == "" {
		next.provided, next.beyond, next.identity = before.provided, before.beyond, before.identity
	}
	if next.caller != nil {
		r.started++
		next.started = r.started
	}
	r.providers[key] = &next
	delete(r.starting, key)
	same := before != nil && before.caller == nil && next.caller == nil && before.why == next.why
	settle := r.begun && !r.settled && len(r.starting) == 0
	r.mu.Unlock()
	switch {
	case settle:
		r.settle()
	case same:
	case before != nil && before.provided.Category != "":
		r.tell(before.provided.Category, cmp.Or(next.provided.Category, allCategories))
	default:
		r.tell(cmp.Or(next.provided.Category, allCategories))
	}
}

// drop forgets a plugin.
func (r *registry) drop(key string) {
	r.mu.Lock()
	before := r.providers[key]
	delete(r.providers, key)
	delete(r.starting, key)
	r.mu.Unlock()
	if before != nil {
		r.tell(cmp.Or(before.provided.Category, allCategories))
	}
}

// known returns what the plugins provide, also those that do not run now. It is false until all were tried.
func (r *registry) known() (known []answer.Provided, settled bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(r.providers)) {
		if p := r.providers[key]; p.provided.Category != "" {
			known = append(known, p.provided)
		}
	}
	return known, r.settled
}

// found is the plugin for a capability.
type found struct {
	provider
	// typ and version are what is asked for, as the plugin names it.
	typ, version string
}

// errStarting says that plugins were not tried yet.
var errStarting = errors.New("the plugins are being started")

// problem says why there is no answer.
type problem struct {
	reason, text string
}

func (p *problem) Error() string { return p.reason + ": " + p.text }

// find returns the plugin for a capability. An error is a [problem], or errStarting. With the problem that the plugin
// does not run, it is returned too.
func (r *registry) find(category, name, version string) (found, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var candidates []found
	for _, key := range slices.Sorted(maps.Keys(r.providers)) {
		p := r.providers[key]
		if r.isReplaced(p) {
			continue
		}
		t, asked, provides := p.provided.Provides(category, name, version)
		unknown := p.provided.Category == "" && p.bound.Allows(category, name) && slices.Contains(r.prefer, p.name)
		if provides || unknown {
			candidates = append(candidates, found{*p, t.Name, asked})
		}
	}
	if len(candidates) == 0 && !r.runs {
		text := "the plugins are not started yet: the Host has to be added to the manager"
		return found{}, &problem{ReasonAsking, text}
	}
	if !r.settled && (len(candidates) == 0 || r.isStarting(category, name)) {
		return found{}, errStarting
	}
	if len(candidates) == 0 {
		return found{}, r.nobody(category, name, version)
	}
	chosen, err := r.choose(candidates)
	switch {
	case err != nil:
		text := fmt.Sprintf("%s is provided by %s", capabilityName(category, name, version), err)
		return found{}, &problem{ReasonSeveralPlugins, text}
	case chosen.caller == nil:
		text := fmt.Sprintf("%s does not run: %s", chosen.name, chosen.why)
		return chosen, &problem{ReasonPluginUnavailable, text}
	}
	return chosen, nil
}

// choose returns the only candidate, or the one that is preferred to the others. The error names them if there is none.
func (r *registry) choose(candidates []found) (found, error) {
	names := make([]string, len(candidates))
	for i, c := range candidates {
		names[i] = c.name
	}
	for _, name := range r.prefer {
		if at := slices.Index(names, name); at >= 0 {
			return candidates[at], nil
		}
	}
	if len(candidates) > 1 {
		return found{}, fmt.Errorf("%s: leave it to one of them, by their entries or by Prefer of the Host",
			message.List(names, maxNamed))
	}
	return candidates[0], nil
}

// isStarting reports whether a provider of a capability may be among those that were not tried yet: the first one that
// serves need not be the only one. The caller holds the lock.
func (r *registry) isStarting(category, name string) bool {
	for _, bound := range r.starting {
		if bound.Allows(category, name) {
			return true
		}
	}
	return r.runs && !r.begun
}

// isReplaced reports whether another program of the same name runs already. The caller holds the lock.
func (r *registry) isReplaced(p *provider) bool {
	for _, other := range r.providers {
		if p.file != "" && other.file == p.file && other.started > p.started {
			return true
		}
	}
	return false
}

// maxNamed is how many plugins a text names, and maxVersions how many versions.
const (
	maxNamed    = 3
	maxVersions = 10
)

// nobody says that no plugin provides a capability, and which plugins there might be. The caller holds the lock.
func (r *registry) nobody(category, name, version string) error {
	text := "no plugin provides " + capabilityName(category, name, version)
	var claiming, failing, versions []string
	for _, key := range slices.Sorted(maps.Keys(r.providers)) {
		p := r.providers[key]
		if p.caller == nil && p.provided.Category == "" {
			failing = append(failing, fmt.Sprintf("%s does not run: %s", p.name, p.why))
		}
		switch says := "%s claims %s, and its entry does not allow that"; {
		case slices.Contains(p.beyond, capabilityName(category, name, "")):
			claiming = slices.Insert(claiming, 0, fmt.Sprintf(says, p.name, "it"))
		case len(p.beyond) > 0:
			claiming = append(claiming, fmt.Sprintf(says, p.name, message.List(p.beyond, maxNamed)))
		}
		if t, _, ok := p.provided.Provides(category, name, ""); ok {
			versions = append(versions, t.Versions...)
		}
	}
	if len(versions) > 0 {
		text += ": there are the versions " + message.List(answer.Sorted(versions), maxVersions)
	}
	if named := append(claiming, failing...); len(named) > 0 {
		text += " (" + message.List(named, maxNamed) + ")"
	}
	return &problem{ReasonNoPlugin, text}
}

func capabilityName(category, name, version string) string {
	text := strings.ToLower(category + "/" + name)
	if version != "" {
		text += " " + version
	}
	return text
}
