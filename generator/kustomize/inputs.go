package kustomize

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"

	"k8s.io/utils/lru"

	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/generator/gotemplate"
)

// maxComponents is for how many components of a generator lookups are kept. A component beyond that is built in each
// request.
const maxComponents = 10000

// inputs knows what builds depend on, besides what is in [generator.Deterministic].
type inputs struct {
	// discovers, looksUp and resource say what the text of any template mentions.
	discovers, looksUp, resource bool

	once sync.Once
	made *lru.Cache
	// unknown counts the answers for components whose lookups are not known.
	unknown atomic.Int64
}

// callsTpl matches calls of a function that executes texts, which may be known only then.
var callsTpl = regexp.MustCompile(`\btpl\s`)

// note looks for names of functions in the files of a folder with templates. It looks at all of them, because a
// template may execute the text of another file.
func (i *inputs) note(f *folder) {
	if f.set == nil {
		return
	}
	for _, content := range f.visible {
		text := string(content)
		computed := callsTpl.MatchString(text)
		i.discovers = i.discovers || computed ||
			strings.Contains(text, "kubernetesVersion") || strings.Contains(text, "apiResources")
		i.looksUp = i.looksUp || computed || strings.Contains(text, "ookup")
		i.resource = i.resource || computed || strings.Contains(text, "component")
	}
}

func (i *inputs) lookups() *lru.Cache {
	i.once.Do(func() { i.made = lru.New(maxComponents) })
	return i.made
}

// record calls f, and keeps what it has looked up for the component.
func (i *inputs) record(ctx context.Context, namespace, name string, f func(context.Context) error) error {
	if !i.looksUp {
		return f(ctx)
	}
	made := &gotemplate.Lookups{}
	err := f(gotemplate.WithLookups(ctx, made))
	i.lookups().Add(keyOf(ctx, namespace, name), made)
	return err
}

// discover finds out what the cluster serves, for functions that are to find the answer: while a large template is
// executed, others wait.
func (i *inputs) discover(ctx context.Context) error {
	if _, err := generator.DiscoveryFromContext(ctx); err != nil || !i.discovers {
		return nil // the functions fail if they are called
	}
	_, err := gotemplate.Discover(ctx)
	return err
}

func (i *inputs) identity(ctx context.Context, namespace, name string) (string, error) {
	var parts []string
	if i.discovers {
		served, err := gotemplate.Discover(ctx)
		if err != nil {
			return "", err
		}
		parts = append(parts, served.Identity())
	}
	if i.looksUp {
		made, ok := i.lookups().Get(keyOf(ctx, namespace, name))
		if !ok {
			// The answer must differ from all before, so that the component is built again.
			return fmt.Sprintf("unknown %d", i.unknown.Add(1)), nil
		}
		identity, err := made.(*gotemplate.Lookups).Identity(ctx)
		if err != nil {
			return "", err
		}
		parts = append(parts, identity)
	}
	if i.resource {
		identity, err := identityOfComponent(ctx)
		if err != nil {
			return "", err
		}
		parts = append(parts, identity)
	}
	return strings.Join(parts, " "), nil
}

// identityOfComponent covers what templates can see of the resource, and what [generator.Deterministic] leaves out. The
// status is not part of it, because it changes with each request.
func identityOfComponent(ctx context.Context) (string, error) {
	object, err := generator.ComponentFromContext(ctx)
	if err != nil {
		// Without it, the function fails.
		return "", nil
	}
	text, err := json.Marshal([]any{object.GetLabels(), object.GetAnnotations()})
	if err != nil {
		return "", errors.New("the labels and annotations of the component cannot be written as JSON")
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}

// keyOf tells components with the same name in different clusters apart.
func keyOf(ctx context.Context, namespace, name string) string {
	uid := ""
	if object, err := generator.ComponentFromContext(ctx); err == nil {
		uid = string(object.GetUID())
	}
	return namespace + "/" + name + "/" + uid
}

func kubernetesVersion(ctx context.Context) (any, error) {
	served, err := gotemplate.Discover(ctx)
	if err != nil {
		return nil, err
	}
	return served.Version, nil
}

func apiResources(ctx context.Context) (any, error) {
	served, err := gotemplate.Discover(ctx)
	if err != nil {
		return nil, err
	}
	return served.Resources, nil
}
