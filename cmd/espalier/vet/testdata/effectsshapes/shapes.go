// Package effectsshapes has shapes that effects was not written from.
package effectsshapes

import (
	"context"
	"database/sql"
	"net/http"
	"os"
	"os/exec"
	"strings"

	"github.com/espalier-dev/espalier"
	v1 "github.com/espalier-dev/espalier/examples/shop/api/v1"
	"github.com/espalier-dev/espalier/reconcilers"
)

type node = reconcilers.SubReconciler[*v1.Shop]

func noop(context.Context, *v1.Shop) error { return nil }

func last() *espalier.Run[*v1.Shop] {
	return espalier.Runs("Last", noop).Finalizes("shop.example.com/last", noop)
}

type service struct {
	http *http.Client
	db   *sql.DB
}

// A request of a client in a field, in a helper.
func (s *service) post(ctx context.Context, path string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, path, nil)
	if err != nil {
		return err
	}
	res, err := s.http.Do(req)
	if err != nil {
		return err
	}
	return res.Body.Close()
}

func (s *service) account(ctx context.Context, shop *v1.Shop) error {
	return s.post(ctx, "/"+shop.Name)
}

func ByMethod(config reconcilers.Config, s *service) *reconcilers.ResourceReconciler[*v1.Shop] {
	return espalier.For(config,
		espalier.Runs("Account", s.account), // want `.`
		last(),
	)
}

// Literals.
func InSequence(s *service) node {
	return reconcilers.Sequence[*v1.Shop]{
		&reconcilers.SyncReconciler[*v1.Shop]{ // want `.`
			Sync: func(ctx context.Context, shop *v1.Shop) error {
				_, err := s.db.ExecContext(ctx, "INSERT INTO shops VALUES ($1)", shop.Name)
				return err
			},
		},
		&reconcilers.WithFinalizer[*v1.Shop]{
			Finalizer:  "shop.example.com/row",
			Reconciler: &reconcilers.SyncReconciler[*v1.Shop]{Sync: noop, Finalize: noop},
		},
	}
}

// Variables, and functions that return nodes.
func File() node {
	return espalier.Runs("File", func(_ context.Context, shop *v1.Shop) error { // want `.`
		return os.WriteFile("/srv/"+shop.Name, nil, 0o600)
	})
}

func Program() *espalier.Run[*v1.Shop] { return espalier.Runs("Program", program).Reports("Done") } // want `.`

func program(ctx context.Context, shop *v1.Shop) error {
	return exec.CommandContext(ctx, "useradd", shop.Name).Run()
}

func ByVariable(config reconcilers.Config) *reconcilers.ResourceReconciler[*v1.Shop] {
	user := Program()
	end := last()
	return espalier.For(config,
		File(),
		user,
		end,
	)
}

// Below other nodes.
func Nested(config reconcilers.Config, s *service) *reconcilers.ResourceReconciler[*v1.Shop] {
	return espalier.For(config,
		espalier.Steps[*v1.Shop](
			espalier.When("Hosted", func(_ context.Context, shop *v1.Shop) bool { return shop.Spec.Host != "" },
				espalier.Runs("Nested", s.account), // want `.`
			),
		),
		espalier.Steps[*v1.Shop](last()),
	)
}

// Before the node that it wraps.
func Advised(s *service) node {
	return &reconcilers.Advice[*v1.Shop]{ // want `.`
		Before: func(ctx context.Context, shop *v1.Shop) (context.Context, reconcilers.Result, error) {
			return ctx, reconcilers.Result{}, s.account(ctx, shop)
		},
		Reconciler: last(),
	}
}

// A list that is made step by step.
func Appended(config reconcilers.Config, s *service) *reconcilers.ResourceReconciler[*v1.Shop] {
	nodes := []node{espalier.Runs("Appended", func(ctx context.Context, _ *v1.Shop) error { // want `.`
		_, err := http.Post("https://example.com", "text/plain", strings.NewReader("a"))
		return err
	})}
	nodes = append(nodes, last())
	return espalier.For(config, nodes...)
}

// A request whose method only asks counts as well: what is in a request is not known.
func (s *service) head(ctx context.Context, shop *v1.Shop) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "/"+shop.Name, nil)
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	return res.Body.Close()
}

func Headed(config reconcilers.Config, s *service) *reconcilers.ResourceReconciler[*v1.Shop] {
	return espalier.For(config, espalier.Runs("Headed", s.head), last()) // want `.`
}

// Near misses.

// After the finalizer, and inside its node.
func After(config reconcilers.Config, s *service) *reconcilers.ResourceReconciler[*v1.Shop] {
	return espalier.For(config,
		espalier.Runs("Registration", s.account).Finalizes("shop.example.com/registration", noop),
		espalier.Runs("After", s.account),
		&reconcilers.WithFinalizer[*v1.Shop]{
			Finalizer:  "shop.example.com/inside",
			Reconciler: espalier.Runs("Inside", s.account),
		},
	)
}

// A tree without a finalizer.
func None(config reconcilers.Config, s *service) *reconcilers.ResourceReconciler[*v1.Shop] {
	return espalier.For(config, espalier.Runs("None", s.account), File())
}

// What is only asked.
func (s *service) ask(ctx context.Context, shop *v1.Shop) error {
	res, err := http.Get("https://example.com/" + shop.Name)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	rows, err := s.db.QueryContext(ctx, "SELECT 1")
	if err != nil {
		return err
	}
	defer rows.Close()
	_, err = os.ReadFile("/etc/hostname")
	return err
}

func Asked(config reconcilers.Config, s *service) *reconcilers.ResourceReconciler[*v1.Shop] {
	return espalier.For(config, espalier.Runs("Asked", s.ask), last())
}

// What is done at the end only.
func Undone(config reconcilers.Config, s *service) *reconcilers.ResourceReconciler[*v1.Shop] {
	return espalier.For(config,
		&reconcilers.SyncReconciler[*v1.Shop]{Sync: noop, Finalize: s.account},
		last(),
	)
}

// Two trees.
func Others(config reconcilers.Config, s *service) []*reconcilers.ResourceReconciler[*v1.Shop] {
	return []*reconcilers.ResourceReconciler[*v1.Shop]{
		espalier.For(config, espalier.Runs("One", s.account)),
		espalier.For(config, last()),
	}
}

// Limits: a list that is made in a loop has no order that is known, and an SDK has functions of its own.
func Looped(config reconcilers.Config, s *service) *reconcilers.ResourceReconciler[*v1.Shop] {
	var nodes []node
	for _, make := range []func() node{File, func() node { return last() }} {
		nodes = append(nodes, make())
	}
	return espalier.For(config, nodes...)
}
