package fidelity_test

import (
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// configMap returns a dependent of owners, each of which waits for it in a foreground deletion.
func configMap(name string, owners ...*corev1.ConfigMap) *corev1.ConfigMap {
	obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for _, owner := range owners {
		obj.OwnerReferences = append(obj.OwnerReferences, metav1.OwnerReference{
			APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID, BlockOwnerDeletion: ptr.To(true),
		})
	}
	return obj
}

// playGarbage deletes an owner of owners.
func playGarbage(p *play, policy metav1.DeletionPropagation) {
	owner, other := configMap("owner"), configMap("other")
	p.create(owner, other)
	held, free, shared := configMap("held", owner), configMap("free", owner), configMap("shared", owner, other)
	held.Finalizers = []string{"example.com/hold"}
	loose := configMap("loose", owner)
	loose.OwnerReferences[0].BlockOwnerDeletion = nil
	loose.Finalizers = held.Finalizers
	p.create(held, free, shared, loose)
	below := configMap("below-held", held)
	below.Finalizers = held.Finalizers
	p.create(below, configMap("below-free", free))
	p.step("create")
	p.delete(owner, policy)
	p.step("delete")
	p.free(below)
	p.step("let the lowest go")
	p.free(held)
	p.step("let the dependent go")
	p.free(loose)
	p.step("let the other dependent go")
	p.delete(other, metav1.DeletePropagationBackground)
	p.step("delete the other owner")
}

// playOwners has owners that are not there, each in another way.
func playOwners(p *play) {
	owner := configMap("owner")
	p.create(owner)
	never := configMap("never-there", owner)
	never.OwnerReferences[0].Name = "never"
	wrongUID := configMap("wrong-uid", owner)
	wrongUID.OwnerReferences[0].UID = "00000000-0000-4000-8000-000000000000"
	wrongKind := configMap("wrong-kind", owner)
	wrongKind.OwnerReferences[0].Kind = "Secret"
	unknown := configMap("unknown-kind", owner)
	unknown.OwnerReferences[0].APIVersion = "example.com/v1"
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: p.namespace}}
	p.must(p.Create(p.Context(), role))
	ofCluster := configMap("of-cluster")
	ofCluster.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole", Name: role.Name, UID: role.UID,
	}}
	p.create(never, wrongUID, wrongKind, unknown, ofCluster, configMap("right", owner))
	p.step("create")
	p.must(p.Delete(p.Context(), role))
	p.step("delete an owner without namespace")

	elsewhere := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: p.namespace + "-b"}}
	p.must(p.Create(p.Context(), elsewhere))
	stranger := configMap("stranger")
	stranger.Namespace = elsewhere.Name
	p.create(stranger)
	p.create(configMap("of-stranger", stranger))
	p.step("an owner in another namespace")
	// A circle of owners.
	first := configMap("circle-1")
	p.create(first)
	second := configMap("circle-2", first)
	p.create(second)
	first.OwnerReferences = configMap("", second).OwnerReferences
	p.must(p.Update(p.Context(), first))
	p.delete(first, metav1.DeletePropagationForeground)
	p.step("a circle")
}

// playNamespace deletes a namespace with content that does not go.
func playNamespace(p *play) {
	held, second := configMap("held"), configMap("second")
	held.Finalizers = []string{"example.com/hold"}
	second.Finalizers = []string{"example.com/hold", "example.com/other"}
	p.create(held, second)
	p.create(configMap("free", held), deployment(1, "1", "0"))
	p.step("create")
	p.must(p.Delete(p.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: p.namespace}}))
	p.step("delete")
	p.free(second)
	p.step("let one go")
	p.free(held)
	p.step("let the other go")
}
