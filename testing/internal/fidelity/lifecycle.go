package fidelity

import (
	batchv1 "k8s.io/api/batch/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var lifecycleChecks = []check{
	{"lifecycle: a Job is deleted without a policy", func(p *probe) {
		job := &batchv1.Job{ObjectMeta: p.metadata("a"), Spec: jobSpec()}
		p.given(job)
		cm := p.configMap("a")
		cm.OwnerReferences = []metav1.OwnerReference{
			{APIVersion: "batch/v1", Kind: "Job", Name: job.Name, UID: job.UID},
		}
		p.given(cm)
		p.sweeps() // The collector may not have seen the dependent before.
		p.call("delete", p.remove(job))
		p.eventually("gone", func() bool { return p.gone(job) })
		p.exists("dependent", cm)
		p.note("owners %s", at(p.read(cm), "metadata", "ownerReferences"))
	}},
	{"lifecycle: all are deleted with a bad policy", func(p *probe) {
		p.given(p.configMap("a"))
		p.call("bad", p.DeleteAllOf(p.ctx, &corev1.ConfigMap{}, client.InNamespace(p.namespace),
			client.PropagationPolicy("Bad")))
		p.exists("exists", p.configMap("a"))
	}},
	{"lifecycle: grace period of a Pod is shortened", func(p *probe) {
		pod := p.pod("a")
		pod.Spec.NodeName = "node"
		p.given(pod)
		for _, seconds := range []client.GracePeriodSeconds{30, 10, 20} {
			p.call("delete", p.remove(pod, seconds))
			p.note("%s", at(p.read(pod), "metadata", "deletionGracePeriodSeconds"))
		}
		p.call("now", p.remove(pod, client.GracePeriodSeconds(0)))
		p.exists("exists", pod)
	}},
	{"lifecycle: a claim is bound", func(p *probe) {
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: p.metadata("a")}
		claim.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
		claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
		p.given(claim)
		p.call("volume", p.patch(claim, merge(`{"spec":{"volumeName":"a"}}`)))
		p.call("another", p.patch(claim, merge(`{"spec":{"volumeName":"b"}}`)))
		p.call("class", p.patch(claim, merge(`{"spec":{"storageClassName":"c"}}`)))
		p.note("%s %s", at(p.read(claim), "spec", "volumeName"), at(p.read(claim), "spec", "storageClassName"))
	}},
	{"lifecycle: labels of what leaves a watched selector", func(p *probe) {
		cm := p.configMap("a")
		cm.Labels = map[string]string{"x": "y"}
		p.given(cm)
		w, err := p.Watch(p.ctx, &corev1.ConfigMapList{}, client.InNamespace(p.namespace),
			client.MatchingLabels{"x": "y"})
		p.must(err)
		defer w.Stop()
		p.must(p.patch(p.configMap("a"), merge(`{"metadata":{"labels":{"x":"z"}},"data":{"a":"2"}}`)))
		event, ok := p.await(w, watch.Deleted)
		p.note("deleted %t %s %s", ok, at(event.Object, "metadata", "labels"), at(event.Object, "data"))
	}},
	{"lifecycle: a signing request is approved", func(p *probe) {
		csr := &certificatesv1.CertificateSigningRequest{
			ObjectMeta: metav1.ObjectMeta{Name: p.namespace},
			Spec: certificatesv1.CertificateSigningRequestSpec{
				Request: []byte(signingRequest), SignerName: "example.com/signer",
				Usages: []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth},
			},
		}
		p.given(csr)
		csr.Status.Certificate = []byte("none")
		csr.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{
			{Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "Tested"},
		}
		p.call("approve", p.SubResource("approval").Update(p.ctx, csr))
		for _, condition := range csr.Status.Conditions {
			p.note("%s %s %s", condition.Type, condition.Status, condition.Reason)
		}
		p.note("certificate %s", at(csr, "status", "certificate"))
	}},
}

// signingRequest asks for a certificate of the name x.
const signingRequest = `-----BEGIN CERTIFICATE REQUEST-----
MIGLMD8CAQAwDDEKMAgGA1UEAwwBeDAqMAUGAytlcAMhAE+gzFWIsa6cYsIOtSS8
AWqfDj4PG2q9A2BfVpZ59q2IoAAwBQYDK2VwA0EAy+/ONc1M0D5X7yrWhE0QM8qy
nq7bGMY4aqVX1A/hwwCxpHDzheZ1N4+rRIpEXldNFivEpvPjJR9+I57J91PqCg==
-----END CERTIFICATE REQUEST-----
`
