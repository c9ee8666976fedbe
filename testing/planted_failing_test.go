package testing_test

import (
	"context"
	"crypto/rand"
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/reconcilers"
	rtesting "github.com/espalier-dev/espalier/testing"
)

// planted are rows of nodes with a bug that replays find, which the same row of the node without the bug passes.
var planted = map[string]struct {
	row          cmCase
	bug, without map[string]any
	want         []string
}{
	"a password is overwritten after a stale read": {
		row: cmCase{
			ExpectCreates: []client.Object{&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "db"}}},
			Replays:       rtesting.Replays{Ignore: []string{"Secret default/db: data.password"}},
		},
		bug: keepsPassword(func(ctx context.Context, c client.Client, s *corev1.Secret, err error) error {
			if apierrors.IsAlreadyExists(err) {
				return c.Update(ctx, s)
			}
			return err
		}),
		without: keepsPassword(func(_ context.Context, _ client.Client, _ *corev1.Secret, err error) error { return err }),
		want: []string{
			`replayed with Stale("get Secret default/db", 2), the row ends in another way`,
			"at the end: Secret default/db: data.password is written again, and is another then",
		},
	},
}

// keepsPassword is the metadata of a row that keeps a Secret with a random password. Created gets the Secret that was
// to be created, and the answer.
func keepsPassword(created func(context.Context, client.Client, *corev1.Secret, error) error) map[string]any {
	return does(func(ctx context.Context, _ *corev1.ConfigMap) error {
		c := reconcilers.RetrieveConfigOrDie(ctx)
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "db"}}
		err := c.Get(ctx, client.ObjectKeyFromObject(secret), secret)
		if !apierrors.IsNotFound(err) {
			return err
		}
		secret.Data = map[string][]byte{"password": []byte(rand.Text())}
		return created(ctx, c, secret, c.Create(ctx, secret))
	})
}

func init() {
	bugs := map[string]scenario{}
	for name, p := range planted {
		row := p.row
		row.Metadata = p.bug
		bugs[name] = scenario{run: faithful(row), want: p.want}
	}
	maps.Copy(scenarios, bugs)
}

func TestRowsPassWithoutThePlantedBugs(t *testing.T) {
	t.Parallel()
	for name, p := range planted {
		t.Run(name, func(t *testing.T) {
			row := p.row
			row.Metadata = p.without
			faithful(row)(t)
		})
	}
}
