package controllers_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/espalier-dev/espalier/testing/internal/controllers"
)

func claim(name string, class *string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{ObjectMeta: meta(name), Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, StorageClassName: class,
		Resources: corev1.VolumeResourceRequirements{Requests: gigabytes(1)},
	}}
}

func volume(name string, size int64) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PersistentVolumeSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, Capacity: gigabytes(size),
		PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/data"}},
	}}
}

// TestClaims binds claims to volumes that are there and that are made, and deletes them.
func TestClaims(t *testing.T) {
	run(t, controllers.Options{}, func(c cluster) {
		made, given, waits := claim("made", nil), claim("given", ptr.To("")), claim("waits", ptr.To("late"))
		mode := storagev1.VolumeBindingWaitForFirstConsumer
		c.create(&storagev1.StorageClass{
			ObjectMeta: metav1.ObjectMeta{Name: "late"}, Provisioner: "example.com/p", VolumeBindingMode: &mode,
		})
		c.create(made)
		c.create(given)
		c.create(waits)
		time.Sleep(time.Second)
		phase := func(claim *corev1.PersistentVolumeClaim, want corev1.PersistentVolumeClaimPhase) {
			c.Helper()
			c.get(claim)
			if claim.Status.Phase != want {
				c.Errorf("the phase of %s is %s", claim.Name, claim.Status.Phase)
			}
		}
		phase(made, corev1.ClaimBound)
		phase(given, corev1.ClaimPending)
		phase(waits, corev1.ClaimPending)
		large, small := volume("large", 10), volume("small", 2)
		c.create(large)
		tiny := volume("tiny", 0)
		tiny.Spec.Capacity[corev1.ResourceStorage] = resource.MustParse("1Mi")
		c.create(tiny)
		c.create(small)
		pod := &corev1.Pod{ObjectMeta: meta("user"), Spec: podTemplate("user").Spec}
		for _, name := range []string{"waits", "made"} {
			v := corev1.Volume{Name: name}
			v.PersistentVolumeClaim = &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}
			pod.Spec.Volumes = append(pod.Spec.Volumes, v)
		}
		c.create(pod)
		time.Sleep(time.Second)
		phase(given, corev1.ClaimBound)
		phase(waits, corev1.ClaimBound)
		c.get(small)
		if n := given.Status.Capacity.Storage().Value(); given.Spec.VolumeName != "small" || n != 2<<30 ||
			small.Status.Phase != corev1.VolumeBound {
			c.Errorf("the claim is bound to %s of %d bytes, which is %s", given.Spec.VolumeName, n, small.Status.Phase)
		}
		c.idle()
		made0 := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: made.Spec.VolumeName}}
		c.get(made0)
		c.must(c.Delete(c.ctx, made))
		c.must(c.Delete(c.ctx, given))
		time.Sleep(time.Minute)
		c.get(made)
		c.gone(given)
		c.get(small)
		if small.Status.Phase != corev1.VolumeReleased {
			c.Errorf("the volume is %s", small.Status.Phase)
		}
		c.must(c.Delete(c.ctx, pod))
		time.Sleep(time.Minute)
		c.gone(made, made0)
		c.idle()
	})
}

// TestProtectedVolume deletes a volume that is bound. It stays until its claim is gone.
func TestProtectedVolume(t *testing.T) {
	run(t, controllers.Options{}, func(c cluster) {
		bound, free, taker := volume("bound", 2), volume("free", 1), claim("taker", new(""))
		bound.Spec.ClaimRef = &corev1.ObjectReference{Namespace: taker.Namespace, Name: taker.Name}
		free.Spec.ClaimRef = &corev1.ObjectReference{Namespace: taker.Namespace, Name: "another"}
		c.create(bound)
		c.create(free)
		c.create(taker)
		time.Sleep(time.Second)
		c.must(c.Delete(c.ctx, bound))
		c.must(c.Delete(c.ctx, free))
		time.Sleep(time.Minute)
		c.gone(free)
		c.get(bound)
		if bound.DeletionTimestamp == nil || bound.Status.Phase != corev1.VolumeBound {
			c.Errorf("the volume is %v", bound)
		}
		c.must(c.Delete(c.ctx, taker))
		time.Sleep(time.Minute)
		c.gone(taker, bound)
		c.idle()
	})
}

// TestService gives a Service an address, and endpoints as its Pods become ready.
func TestService(t *testing.T) {
	run(t, controllers.Options{Behavior: slow}, func(c cluster) {
		service := &corev1.Service{ObjectMeta: meta("a"), Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeLoadBalancer, Selector: map[string]string{"app": "a"},
			Ports: []corev1.ServicePort{{Name: "http", Port: 80, TargetPort: intstr.FromInt32(8080)}},
		}}
		c.create(service)
		c.create(deployment("a", 2))
		c.create(deployment("b", 1))
		endpoints := func(want int, ready bool) {
			c.Helper()
			slices := &discoveryv1.EndpointSliceList{}
			c.must(c.List(c.ctx, slices))
			if len(slices.Items) != 1 || len(slices.Items[0].Endpoints) != want ||
				*slices.Items[0].Ports[0].Port != 8080 {
				c.Fatalf("the slices are %v", slices.Items)
			}
			for _, endpoint := range slices.Items[0].Endpoints {
				if *endpoint.Conditions.Ready != ready {
					c.Errorf("the endpoint is %v", endpoint)
				}
			}
		}
		time.Sleep(time.Second)
		endpoints(2, false)
		time.Sleep(time.Minute)
		endpoints(2, true)
		c.get(service)
		if len(service.Status.LoadBalancer.Ingress) != 1 {
			c.Errorf("the status is %v", service.Status)
		}
		c.idle()
		c.must(c.Delete(c.ctx, service))
		time.Sleep(time.Minute)
		c.gone(service)
		left := &discoveryv1.EndpointSliceList{}
		c.must(c.List(c.ctx, left))
		if len(left.Items) > 0 {
			c.Errorf("the slices are %v", left.Items)
		}
	})
}
