package store

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/testing/internal/storage"
)

// Create implements [client.Client].
func (c *Client) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	options := (&client.CreateOptions{}).ApplyOptions(append([]client.CreateOption{c.owner()}, opts...))
	w := write{verb: Create, manager: options.FieldManager, dryRun: options.DryRun}
	return c.write(ctx, w, obj, obj, func(ctx context.Context, remote client.WithWatch, sent, _ client.Object) error {
		return remote.Create(ctx, sent, options)
	})
}

// Update implements [client.Client].
func (c *Client) Update(ctx context.Context, obj client.Object, opts ...client.UpdateOption) error {
	options := (&client.UpdateOptions{}).ApplyOptions(append([]client.UpdateOption{c.owner()}, opts...))
	w := write{verb: Update, manager: options.FieldManager, dryRun: options.DryRun}
	if c.options.RefuseDropped {
		w.status = func(map[string]any) (any, error) { return statusOf(obj), nil }
	}
	return c.write(ctx, w, obj, obj, func(ctx context.Context, remote client.WithWatch, sent, _ client.Object) error {
		return remote.Update(ctx, sent, options)
	})
}

// Patch implements [client.Client].
func (c *Client) Patch(
	ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption,
) error {
	made, err := newPatch(patch, obj)
	if err != nil {
		return err
	}
	options := (&client.PatchOptions{}).ApplyOptions(append(c.patchOwner(made), opts...))
	w := write{
		verb: made.verb(), manager: c.manager(options.FieldManager), dryRun: options.DryRun, fields: made.hasFields(),
	}
	if c.options.RefuseDropped && w.verb == Patch {
		w.status = made.status
	}
	return c.write(ctx, w, obj, obj, func(ctx context.Context, remote client.WithWatch, sent, _ client.Object) error {
		return remote.Patch(ctx, sent, made, options)
	})
}

// patchOwner is the option for the field manager of a patch. That of an apply must be said.
func (c *Client) patchOwner(of patch) []client.PatchOption {
	switch {
	case of.verb() == Patch:
		return []client.PatchOption{c.owner()}
	case c.options.FieldManager != "":
		return []client.PatchOption{client.FieldOwner(c.options.FieldManager)}
	}
	return nil
}

// Apply implements [client.Client].
func (c *Client) Apply(ctx context.Context, config runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	return c.apply(ctx, config, "", (&client.ApplyOptions{}).ApplyOptions(opts),
		func(
			ctx context.Context, remote client.WithWatch, sent runtime.ApplyConfiguration, by ...client.ApplyOption,
		) error {
			return remote.Apply(ctx, sent, append(by, opts...)...)
		})
}

// apply applies a configuration, and fills it with the answer.
func (c *Client) apply(
	ctx context.Context, config runtime.ApplyConfiguration, subresource string, options *client.ApplyOptions,
	send func(context.Context, client.WithWatch, runtime.ApplyConfiguration, ...client.ApplyOption) error,
) error {
	data, err := json.Marshal(config)
	if err != nil {
		return fmt.Errorf("cannot marshal %T: %w", config, err)
	}
	named := &metav1.PartialObjectMetadata{}
	if err := json.Unmarshal(data, named); err != nil {
		return fmt.Errorf("cannot identify %T: %w", config, err)
	}
	r := c.request(Apply, named.GroupVersionKind(), client.ObjectKeyFromObject(named))
	r.Subresource, r.DryRun = subresource, isDryRun(options.DryRun)
	r.manager = c.manager(options.FieldManager)
	var by []client.ApplyOption
	if c.options.FieldManager != "" {
		by = append(by, client.FieldOwner(c.options.FieldManager))
	}
	sent := &unstructured.Unstructured{}
	err = c.do(ctx, r, func(ctx context.Context, remote client.WithWatch) error {
		sent.Object = nil
		if err := json.Unmarshal(data, &sent.Object); err != nil {
			return err
		}
		if err := send(ctx, remote, client.ApplyConfigurationFromUnstructured(sent), by...); err != nil {
			return err
		}
		c.rememberWritten(r, sent)
		return nil
	})
	if err != nil {
		return err
	}
	if u, ok := config.(runtime.Unstructured); ok {
		u.SetUnstructuredContent(sent.Object)
		return nil
	}
	answer, err := json.Marshal(sent.Object)
	if err != nil {
		return fmt.Errorf("cannot marshal %s %q: %w", named.Kind, named.Name, err)
	}
	return json.Unmarshal(answer, config)
}

// write says how an object is written.
type write struct {
	verb        Verb
	subresource string
	manager     string
	dryRun      []string
	// fields says that the request has managed fields.
	fields bool
	// status returns the status that a request has with the content of the live object, to refuse one that changes
	// nothing else; nil makes it.
	status func(live map[string]any) (any, error)
}

// write makes a call about an object, and fills body with the answer. Send is called with copies.
func (c *Client) write(
	ctx context.Context, w write, obj, body client.Object,
	send func(ctx context.Context, remote client.WithWatch, obj, body client.Object) error,
) error {
	gvk, err := c.GroupVersionKindFor(obj)
	if err != nil {
		return err
	}
	r := c.request(w.verb, gvk, client.ObjectKeyFromObject(obj))
	r.manager, r.Subresource, r.DryRun = w.manager, w.subresource, isDryRun(w.dryRun)
	r.Live = w.verb == Get // Caches have no subresources.
	if r.Name == "" && obj.GetGenerateName() != "" {
		r.Name = obj.GetGenerateName() + "*"
	}
	var answer client.Object
	err = c.do(ctx, r, func(ctx context.Context, remote client.WithWatch) error {
		sent, err := copyOf(obj)
		if err != nil {
			return err
		}
		if answer = sent; body != obj {
			if answer, err = copyOf(body); err != nil {
				return err
			}
		}
		before := c.entry(r)
		if err := send(ctx, remote, sent, answer); err != nil {
			return err
		}
		c.rememberWritten(r, answer)
		return c.refuseDropped(r, w, before)
	})
	if err != nil {
		return err
	}
	if w.fields || len(body.GetManagedFields()) > 0 {
		c.store.show(answer.GetUID())
	}
	c.store.hideFields(answer)
	fillWith(body, answer)
	return nil
}

// entry returns the entry of the object of a call, nil if there is none.
func (c *Client) entry(r request) *storage.Entry {
	if r.kind == nil {
		return nil
	}
	return c.store.kept.Entry(r.kind.Key(r.Namespace, r.Name))
}

// Delete implements [client.Client]. There are no kubelets: a Pod on a node with a grace period stays until it is
// deleted with a period of zero.
func (c *Client) Delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error {
	gvk, err := c.GroupVersionKindFor(obj)
	if err != nil {
		return err
	}
	options := (&client.DeleteOptions{}).ApplyOptions(opts)
	r := c.request(Delete, gvk, client.ObjectKeyFromObject(obj))
	r.DryRun, r.manager = isDryRun(options.DryRun), c.manager("")
	if options.Preconditions != nil && options.Preconditions.UID != nil {
		r.UID = *options.Preconditions.UID
	}
	return c.do(ctx, r, func(ctx context.Context, remote client.WithWatch) error {
		sent, err := copyOf(obj)
		if err != nil {
			return err
		}
		return remote.Delete(ctx, sent, options)
	})
}

// DeleteAllOf implements [client.Client].
func (c *Client) DeleteAllOf(ctx context.Context, obj client.Object, opts ...client.DeleteAllOfOption) error {
	gvk, err := c.GroupVersionKindFor(obj)
	if err != nil {
		return err
	}
	options := (&client.DeleteAllOfOptions{}).ApplyOptions(opts)
	r := c.request(DeleteCollection, gvk, client.ObjectKey{Namespace: options.Namespace})
	r.DryRun, r.manager = isDryRun(options.DryRun), c.manager("")
	return c.do(ctx, r, func(ctx context.Context, remote client.WithWatch) error {
		sent, err := copyOf(obj)
		if err != nil {
			return err
		}
		return remote.DeleteAllOf(ctx, sent, options)
	})
}

// patch is a patch whose content does not change.
type patch struct {
	kind types.PatchType
	data []byte
}

var _ client.Patch = patch{}

func newPatch(p client.Patch, obj client.Object) (patch, error) {
	data, err := p.Data(obj)
	return patch{p.Type(), data}, err
}

// Type implements [client.Patch].
func (p patch) Type() types.PatchType { return p.kind }

// Data implements [client.Patch].
func (p patch) Data(client.Object) ([]byte, error) { return p.data, nil }

// hasFields reports whether the patch may have managed fields.
func (p patch) hasFields() bool { return bytes.Contains(p.data, []byte("managedFields")) }

func (p patch) verb() Verb {
	if p.kind == types.ApplyPatchType {
		return Apply
	}
	return Patch
}
