package stuck_test

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// waits are what the operator waits for.
var waits = map[string]story{
	"input-missing": {
		plant: func(s *scene) { s.widget("credentials", "login") },
		mend: func(s *scene) {
			secret := &corev1.Secret{ObjectMeta: s.part("")}
			secret.Name = "login"
			s.made(secret)
		},
	},
	"rollout-fails": {
		plant: func(s *scene) {
			s.widget("image", "shop:1.O")
			s.notRolledOut("server", `{"type":"Progressing","status":"False","reason":"ProgressDeadlineExceeded",
				"message":"ReplicaSet \"server-5d9\" has timed out progressing."}`)
		},
		mend: func(s *scene) {
			s.sets("image", "shop:1.0")
			s.changed("server", 2)
			s.rolledOut("server")
		},
	},
	"image-not-pulled": {
		plant: func(s *scene) {
			s.widget("frontend", "shop:1.O")
			s.notRolledOut("frontend", `{"type":"Progressing","status":"True","reason":"ReplicaSetUpdated"}`)
			pod := &corev1.Pod{ObjectMeta: s.part("frontend"), Spec: podOf("shop:1.O")}
			pod.Labels = map[string]string{"app": pod.Name}
			s.made(pod)
			s.patches(pod, `{"status":{"phase":"Pending","containerStatuses":[{"name":"main","image":"shop:1.O",
				"imageID":"","ready":false,"restartCount":0,"state":{"waiting":{"reason":"ImagePullBackOff",
				"message":"Back-off pulling image \"shop:1.O\""}}}]}}`, "status")
		},
		mend: func(s *scene) {
			s.sets("frontend", "shop:1.0")
			s.changed("frontend", 2)
			s.deletes(&corev1.Pod{ObjectMeta: s.part("frontend")})
			s.rolledOut("frontend")
		},
	},
	"volume-pending": {
		plant: func(s *scene) {
			s.widget("data", "1Gi")
			s.bound("Pending")
		},
		mend: func(s *scene) { s.bound("Bound") },
	},
	"job-failed": {
		plant: func(s *scene) {
			s.widget("migration", "migrate:1")
			s.patches(&batchv1.Job{ObjectMeta: s.part("migration")}, `{"status":{
				"startTime":"2026-01-02T03:04:05Z","failed":7,"conditions":[
				{"type":"FailureTarget","status":"True","reason":"BackoffLimitExceeded"},
				{"type":"Failed","status":"True","reason":"BackoffLimitExceeded",
				"message":"Job has reached the specified backoff limit"}]}}`, "status")
		},
		mend: func(s *scene) {
			failed := &batchv1.Job{ObjectMeta: s.part("migration")}
			if err := s.Get(s.Context(), client.ObjectKeyFromObject(failed), failed); err != nil {
				s.Fatal(err)
			}
			if err := s.Delete(s.Context(), failed, client.PropagationPolicy("Background")); err != nil {
				s.Fatal(err)
			}
			s.succeeded(failed.UID)
		},
	},
	"finalizer-of-another": {
		plant: func(s *scene) {
			s.widget()
			s.settles()
			s.patches(&corev1.ConfigMap{ObjectMeta: s.part("settings")},
				`{"metadata":{"finalizers":["backup.example.com/archive"]}}`)
			s.deletes(&corev1.ConfigMap{ObjectMeta: s.part("settings")})
		},
		mend: func(s *scene) {
			s.patches(&corev1.ConfigMap{ObjectMeta: s.part("settings")}, `{"metadata":{"finalizers":null}}`)
		},
	},
	"prerequisite": {
		plant: func(s *scene) {
			s.widget("data", "1Gi", "search", "yes")
			s.bound("Pending")
		},
		mend: func(s *scene) { s.bound("Bound") },
	},
	"name-changed": {
		plant: func(s *scene) {
			s.widget("data", "1Gi")
			s.bound("Bound")
			s.settles()
			s.sets("disk", "fast")
		},
		mend: func(s *scene) { s.sets("disk", "") },
	},
}

// notRolledOut says of a Deployment what its controller would say while no Pod is ready.
func (s *scene) notRolledOut(part, progress string) {
	s.Helper()
	s.patches(&appsv1.Deployment{ObjectMeta: s.part(part)}, `{"status":{
		"observedGeneration":1,"replicas":1,"updatedReplicas":1,"unavailableReplicas":1,
		"conditions":[{"type":"Available","status":"False","reason":"MinimumReplicasUnavailable"},`+progress+`]}}`,
		"status")
}

// bound says of the claim in which phase it is, as a controller would.
func (s *scene) bound(phase string) {
	s.Helper()
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: s.part("data")}
	s.patches(claim, fmt.Sprintf(`{"status":{"phase":%q}}`, phase), "status")
}

// succeeded says of the Job that came after another one that it has ended well, as a controller would.
func (s *scene) succeeded(before types.UID) {
	s.Helper()
	eventually(s, "there is no new Job", func(ctx context.Context) error {
		job := &batchv1.Job{}
		if err := s.Get(ctx, s.partKey("migration"), job); err != nil {
			return err
		}
		if job.UID == before {
			return errors.New("it is the old one")
		}
		return nil
	})
	s.patches(&batchv1.Job{ObjectMeta: s.part("migration")}, `{"status":{
		"startTime":"2026-01-02T03:04:05Z","completionTime":"2026-01-02T03:05:05Z","succeeded":1,"conditions":[
		{"type":"SuccessCriteriaMet","status":"True"},{"type":"Complete","status":"True"}]}}`, "status")
}

// changed waits until a Deployment has a generation.
func (s *scene) changed(part string, generation int64) {
	s.Helper()
	eventually(s, "the Deployment is not changed", func(ctx context.Context) error {
		d := &appsv1.Deployment{}
		if err := s.Get(ctx, s.partKey(part), d); err != nil {
			return err
		}
		if d.Generation < generation {
			return fmt.Errorf("it has the generation %d, not %d", d.Generation, generation)
		}
		return nil
	})
}

func (s *scene) partKey(part string) types.NamespacedName {
	m := s.part(part)
	return types.NamespacedName{Namespace: m.Namespace, Name: m.Name}
}
