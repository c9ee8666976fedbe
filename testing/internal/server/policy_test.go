package server_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/espalier-dev/espalier/testing/internal/server"
)

func TestValidatingAdmissionPolicy(t *testing.T) {
	run(t, server.Options{}, func(c cluster) {
		c.create(&admissionregistrationv1.ValidatingAdmissionPolicy{
			ObjectMeta: metav1.ObjectMeta{Name: "small"},
			Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
				FailurePolicy: ptr.To(admissionregistrationv1.Fail),
				MatchConstraints: &admissionregistrationv1.MatchResources{
					MatchPolicy:       ptr.To(admissionregistrationv1.Equivalent),
					NamespaceSelector: &metav1.LabelSelector{}, ObjectSelector: &metav1.LabelSelector{},
					ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: creations[0]}},
				},
				Validations: []admissionregistrationv1.Validation{{
					Expression: "size(object.data) < 2", Message: "it is too large",
				}},
			},
		})
		c.create(&admissionregistrationv1.ValidatingAdmissionPolicyBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "small"},
			Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
				PolicyName:        "small",
				ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
			},
		})
		synctest.Wait() // The server sees the policy.
		time.Sleep(time.Second)
		c.create(configMap("a"))
		large := configMap("b")
		large.Data["b"] = "2"
		err := c.Create(c.ctx, large)
		c.refused(err, apierrors.IsInvalid)
		c.refused(err, func(err error) bool { return err != nil && strings.Contains(err.Error(), "it is too large") })
	})
}
