package fidelity

import (
	"regexp"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// random matches what an API server chooses in a spec: UIDs, cluster addresses and node ports.
var random = regexp.MustCompile(
	`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|10\.\d+\.\d+\.\d+|"nodePort":\d+`)

// completes creates an object and notes what the server made of a part of it.
func (p *probe) completes(obj client.Object, path ...string) {
	if p.call("create", p.create(obj)) {
		p.note("%s", random.ReplaceAllString(at(obj, path...), "*"))
	}
	if at(obj, path...) != at(p.read(obj), path...) {
		p.note("stored otherwise")
	}
}

var builtInChecks = []check{
	{"defaults: Deployment", func(p *probe) { p.completes(p.deployment("a"), "spec") }},
	{"defaults: Deployment with all kinds of parts", func(p *probe) { p.completes(p.richDeployment("a"), "spec") }},
	{"defaults: StatefulSet", func(p *probe) { p.completes(p.statefulSet("a"), "spec") }},
	{"defaults: DaemonSet", func(p *probe) {
		p.completes(&appsv1.DaemonSet{
			ObjectMeta: p.metadata("a"), Spec: appsv1.DaemonSetSpec{Selector: selector(), Template: podTemplate()},
		}, "spec")
	}},
	{"defaults: Job", func(p *probe) {
		p.completes(&batchv1.Job{ObjectMeta: p.metadata("a"), Spec: jobSpec()}, "spec")
	}},
	{"defaults: CronJob", func(p *probe) {
		p.completes(&batchv1.CronJob{ObjectMeta: p.metadata("a"), Spec: cronJobSpec()}, "spec")
	}},
	{"defaults: Pod", func(p *probe) { p.completes(p.pod("a"), "spec") }},
	{"defaults: priority and tolerations of a Pod", func(p *probe) {
		class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: p.namespace}, Value: 7}
		class.PreemptionPolicy = new(corev1.PreemptNever)
		p.given(class)
		p.eventually("known", func() bool {
			pod := p.pod("a")
			pod.Spec.PriorityClassName = p.namespace
			return p.create(pod, client.DryRunAll) == nil
		})
		for _, c := range []struct {
			what string
			make func(*corev1.PodSpec)
		}{
			{"class", func(s *corev1.PodSpec) { s.PriorityClassName = p.namespace }},
			{"of the system", func(s *corev1.PodSpec) { s.PriorityClassName = "system-node-critical" }},
			{"unknown", func(s *corev1.PodSpec) { s.PriorityClassName = "unknown" }},
			{"number", func(s *corev1.PodSpec) { s.Priority = new(int32(3)) }},
			{"other policy", func(s *corev1.PodSpec) { s.PreemptionPolicy = new(corev1.PreemptNever) }},
			{"all tolerated", func(s *corev1.PodSpec) {
				s.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
			}},
			{"one tolerated", func(s *corev1.PodSpec) {
				s.Tolerations = []corev1.Toleration{
					{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists},
				}
			}},
		} {
			pod := p.pod("a")
			c.make(&pod.Spec)
			p.call(c.what, p.create(pod, client.DryRunAll))
			p.note("%s %s %s %s", pod.Spec.PriorityClassName, at(pod, "spec", "priority"),
				at(pod, "spec", "preemptionPolicy"), at(pod, "spec", "tolerations"))
		}
	}},
	{"defaults: Service", func(p *probe) { p.completes(p.service("a"), "spec") }},
	{"defaults: Service without a cluster address", func(p *probe) {
		s := p.service("a")
		s.Spec.ClusterIP = "None"
		p.completes(s, "spec")
	}},
	{"defaults: Service of type LoadBalancer", func(p *probe) {
		s := p.service("a")
		s.Spec.Type = corev1.ServiceTypeLoadBalancer
		p.completes(s, "spec")
	}},
	{"defaults: Ingress", func(p *probe) {
		p.completes(&networkingv1.Ingress{ObjectMeta: p.metadata("a"), Spec: ingressSpec()}, "spec")
	}},
	{"defaults: NetworkPolicy", func(p *probe) {
		p.completes(&networkingv1.NetworkPolicy{
			ObjectMeta: p.metadata("a"),
			Spec: networkingv1.NetworkPolicySpec{
				Egress: []networkingv1.NetworkPolicyEgressRule{{
					Ports: []networkingv1.NetworkPolicyPort{{Port: new(intstr.FromInt32(53))}},
				}},
			},
		}, "spec")
	}},
	{"defaults: PersistentVolumeClaim", func(p *probe) {
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: p.metadata("a"), Spec: claimSpec()}
		p.completes(claim, "spec")
		p.note("%s %v", at(claim, "status"), claim.Finalizers)
	}},
	{"defaults: HorizontalPodAutoscaler", func(p *probe) {
		p.completes(&autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: p.metadata("a"), Spec: autoscalerSpec()}, "spec")
	}},
	{"defaults: roles", func(p *probe) {
		p.completes(&rbacv1.RoleBinding{
			ObjectMeta: p.metadata("a"),
			RoleRef:    rbacv1.RoleRef{Kind: "Role", Name: "a"},
			Subjects: []rbacv1.Subject{
				{Kind: "ServiceAccount", Name: "a", Namespace: p.namespace}, {Kind: "User", Name: "u"},
			},
		}, "subjects")
		binding := &rbacv1.RoleBinding{ObjectMeta: p.metadata("a")}
		p.must(p.get(binding))
		p.note("%s", at(binding, "roleRef"))
	}},
	{"defaults: Secret and ServiceAccount", func(p *probe) {
		p.completes(&corev1.Secret{ObjectMeta: p.metadata("a")}, "type")
		p.completes(&corev1.ServiceAccount{ObjectMeta: p.metadata("a")}, "secrets")
	}},
	{"defaults: StorageClass", func(p *probe) {
		class := &storagev1.StorageClass{
			ObjectMeta: metav1.ObjectMeta{Name: p.namespace}, Provisioner: "example.com/a",
		}
		p.completes(class, "reclaimPolicy")
		p.note("%s", at(class, "volumeBindingMode"))
	}},
	{"defaults: webhook", func(p *probe) {
		effects := admissionregistrationv1.SideEffectClassNone
		p.completes(&admissionregistrationv1.ValidatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: p.namespace},
			Webhooks: []admissionregistrationv1.ValidatingWebhook{{
				Name: "a.example.com", SideEffects: &effects, AdmissionReviewVersions: []string{"v1"},
				ClientConfig: admissionregistrationv1.WebhookClientConfig{
					Service: &admissionregistrationv1.ServiceReference{Namespace: p.namespace, Name: "a"},
				},
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"no": "such"}},
				Rules: []admissionregistrationv1.RuleWithOperations{{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
					Rule: admissionregistrationv1.Rule{
						APIGroups: []string{"no.example.com"}, APIVersions: []string{"v1"}, Resources: []string{"as"},
					},
				}},
			}},
		}, "webhooks")
	}},

	{"built-in: Deployment that is invalid", func(p *probe) {
		for _, c := range []struct {
			what string
			make func(*appsv1.DeploymentSpec)
		}{
			{"selector of others", func(s *appsv1.DeploymentSpec) {
				s.Template.Labels = map[string]string{"app": "b"}
			}},
			{"no selector", func(s *appsv1.DeploymentSpec) { s.Selector = nil }},
			{"empty selector", func(s *appsv1.DeploymentSpec) { s.Selector = &metav1.LabelSelector{} }},
			{"negative replicas", func(s *appsv1.DeploymentSpec) { s.Replicas = new(int32(-1)) }},
			{"no containers", func(s *appsv1.DeploymentSpec) { s.Template.Spec.Containers = nil }},
			{"no image", func(s *appsv1.DeploymentSpec) { s.Template.Spec.Containers[0].Image = "" }},
			{"container name", func(s *appsv1.DeploymentSpec) { s.Template.Spec.Containers[0].Name = "A" }},
			{"two of a name", func(s *appsv1.DeploymentSpec) {
				s.Template.Spec.Containers = append(s.Template.Spec.Containers, s.Template.Spec.Containers[0])
			}},
			{"missing volume", func(s *appsv1.DeploymentSpec) {
				s.Template.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "v", MountPath: "/v"}}
			}},
			{"restart policy", func(s *appsv1.DeploymentSpec) {
				s.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
			}},
			{"port", func(s *appsv1.DeploymentSpec) {
				s.Template.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 70000}}
			}},
			{"limit below request", func(s *appsv1.DeploymentSpec) {
				s.Template.Spec.Containers[0].Resources = corev1.ResourceRequirements{
					Requests: resourceList("cpu", "2"), Limits: resourceList("cpu", "1"),
				}
			}},
			{"strategy", func(s *appsv1.DeploymentSpec) { s.Strategy.Type = "Other" }},
		} {
			d := p.deployment("a")
			c.make(&d.Spec)
			p.call(c.what, p.create(d, client.DryRunAll))
		}
	}},
	{"built-in: Deployment's selector does not change", func(p *probe) {
		d := p.deployment("a")
		p.given(d)
		d.Spec.Selector.MatchLabels["x"], d.Spec.Template.Labels["x"] = "y", "y"
		p.call("update", p.update(d))
	}},
	{"built-in: StatefulSet's service does not change", func(p *probe) {
		s := p.statefulSet("a")
		p.given(s)
		s.Spec.ServiceName = "other"
		p.call("service", p.update(s))
		p.call("replicas", p.patch(p.statefulSet("a"), merge(`{"spec":{"replicas":2}}`)))
	}},
	{"built-in: Job's template does not change", func(p *probe) {
		job := &batchv1.Job{ObjectMeta: p.metadata("a"), Spec: jobSpec()}
		p.given(job)
		changed := job.DeepCopy()
		changed.Spec.Template.Spec.Containers[0].Image = "other"
		p.call("template", p.update(changed))
		p.call("suspend", p.patch(job, merge(`{"spec":{"suspend":true}}`)))
		always := jobSpec()
		always.Template.Spec.RestartPolicy = corev1.RestartPolicyAlways
		p.call("restart policy", p.create(&batchv1.Job{ObjectMeta: p.metadata("b"), Spec: always}))
	}},
	{"built-in: Pod's spec does not change", func(p *probe) {
		p.given(p.pod("a"))
		p.call("image", p.patch(p.pod("a"), strategic(
			`{"spec":{"containers":[{"name":"main","image":"other"}]}}`)))
		p.call("hostname", p.patch(p.pod("a"), merge(`{"spec":{"hostname":"other"}}`)))
	}},
	{"built-in: claim's spec does not change", func(p *probe) {
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: p.metadata("a"), Spec: claimSpec()}
		p.given(claim)
		p.call("modes", p.patch(claim, merge(`{"spec":{"accessModes":["ReadWriteMany"]}}`)))
		empty := &corev1.PersistentVolumeClaim{ObjectMeta: p.metadata("b")}
		p.call("nothing asked", p.create(empty))
	}},
	{"built-in: role that is bound does not change", func(p *probe) {
		binding := &rbacv1.RoleBinding{
			ObjectMeta: p.metadata("a"),
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "a"},
		}
		p.given(binding)
		binding.RoleRef.Name = "b"
		p.call("update", p.update(binding))
		role := &rbacv1.Role{ObjectMeta: p.metadata("a"), Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{""}, Resources: []string{"pods"},
		}}}
		p.call("no verbs", p.create(role))
	}},
	{"built-in: Service keeps its address", func(p *probe) {
		s := p.service("a")
		p.given(s)
		address := s.Spec.ClusterIP
		sent := p.service("a")
		sent.Spec.Ports[0].Port = 81
		p.call("not sent", p.update(sent))
		p.note("kept %t", sent.Spec.ClusterIP == address && address != "")
		p.call("changed", p.patch(s, merge(`{"spec":{"clusterIP":"10.0.0.77","clusterIPs":["10.0.0.77"]}}`)))
	}},
	{"built-in: Service that is invalid", func(p *probe) {
		for _, c := range []struct {
			what string
			make func(*corev1.Service)
		}{
			{"no ports", func(s *corev1.Service) { s.Spec.Ports = nil }},
			{"port", func(s *corev1.Service) { s.Spec.Ports[0].Port = 0 }},
			{"ports without names", func(s *corev1.Service) {
				s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Port: 81})
			}},
			{"name", func(s *corev1.Service) { s.Name = "1a" }},
			{"external without name", func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeExternalName }},
			{"type", func(s *corev1.Service) { s.Spec.Type = "Other" }},
		} {
			s := p.service("a")
			c.make(s)
			p.call(c.what, p.create(s, client.DryRunAll))
		}
	}},
	{"built-in: Secret's stringData", func(p *probe) {
		s := &corev1.Secret{ObjectMeta: p.metadata("a"), StringData: map[string]string{"a": "1"}}
		s.Data = map[string][]byte{"a": []byte("0"), "b": []byte("2")}
		p.given(s)
		p.note("answered %s %s", at(s, "data"), at(s, "stringData"))
		s.StringData = map[string]string{"c": "3"}
		p.must(p.update(s))
		p.note("updated %s %s", at(s, "data"), at(s, "stringData"))
		p.must(p.patch(s, merge(`{"stringData":{"a":"4"}}`)))
		p.note("patched %s %s", at(s, "data"), at(s, "stringData"))
	}},
	{"built-in: Secret's type", func(p *probe) {
		s := &corev1.Secret{ObjectMeta: p.metadata("a")}
		p.given(s)
		p.call("changed", p.patch(s, merge(`{"type":"other"}`)))
		tls := &corev1.Secret{ObjectMeta: p.metadata("b"), Type: corev1.SecretTypeTLS}
		p.call("keys missing", p.create(tls))
		registry := &corev1.Secret{ObjectMeta: p.metadata("c"), Type: corev1.SecretTypeDockerConfigJson}
		p.call("file missing", p.create(registry))
		registry.Data = map[string][]byte{corev1.DockerConfigJsonKey: []byte("no JSON")}
		p.call("no JSON", p.create(registry))
	}},
	{"built-in: immutable ConfigMap and Secret", func(p *probe) {
		cm := p.configMap("a")
		cm.Immutable = new(true)
		p.given(cm)
		p.call("data", p.patch(cm.DeepCopy(), merge(`{"data":{"a":"2"}}`)))
		p.call("mutable again", p.patch(cm.DeepCopy(), merge(`{"immutable":null}`)))
		p.call("label", p.patch(cm.DeepCopy(), merge(`{"metadata":{"labels":{"x":"y"}}}`)))
		s := &corev1.Secret{ObjectMeta: p.metadata("a"), Immutable: new(true)}
		p.given(s)
		p.call("secret", p.patch(s.DeepCopy(), merge(`{"stringData":{"a":"2"}}`)))
		p.call("mutable again", p.patch(s, merge(`{"immutable":false}`)))
	}},
	{"built-in: ConfigMap's keys", func(p *probe) {
		cm := p.configMap("a")
		cm.Data["no/key"] = "x"
		p.call("invalid", p.create(cm))
		cm = p.configMap("a")
		cm.BinaryData = map[string][]byte{"a": []byte("x")}
		p.call("in both", p.create(cm))
	}},
	{"built-in: CronJob, Ingress and disruption budget that are invalid", func(p *probe) {
		cron := &batchv1.CronJob{ObjectMeta: p.metadata("a"), Spec: cronJobSpec()}
		cron.Spec.Schedule = "often"
		p.call("schedule", p.create(cron))
		p.call("empty Ingress", p.create(&networkingv1.Ingress{ObjectMeta: p.metadata("a")}))
		p.call("budget of both", p.create(&policyv1.PodDisruptionBudget{
			ObjectMeta: p.metadata("a"), Spec: policyv1.PodDisruptionBudgetSpec{
				MinAvailable: new(intstr.FromInt32(1)), MaxUnavailable: new(intstr.FromInt32(1)),
			},
		}))
		scaler := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: p.metadata("a"), Spec: autoscalerSpec()}
		scaler.Spec.MinReplicas = new(int32(5))
		p.call("autoscaler", p.create(scaler))
	}},

	{"metadata: invalid names", func(p *probe) {
		p.call("upper case", p.create(p.configMap("A")))
		p.call("underscore", p.create(p.gadget("a_b", nil)))
		p.call("slash", p.create(p.configMap("a/b")))
		p.call("long", p.create(p.configMap(strings.Repeat("a", 254))))
		p.call("colon in a role", p.create(&rbacv1.Role{ObjectMeta: p.metadata("a:b")}))
		d := p.deployment("a.b")
		p.call("dot in a Deployment", p.create(d, client.DryRunAll))
		g := p.configMap("")
		g.GenerateName = "A-"
		p.call("prefix", p.create(g))
	}},
	{"metadata: invalid labels and annotations", func(p *probe) {
		for _, labels := range []map[string]string{
			{"a b": "x"}, {"a": "x y"}, {"a": strings.Repeat("x", 64)}, {"a/b/c": "x"},
		} {
			cm, g := p.configMap("a"), p.gadget("a", nil)
			cm.Labels = labels
			g.SetLabels(labels)
			p.call("label", p.create(cm))
			p.call("of a Gadget", p.create(g))
		}
		cm := p.configMap("a")
		cm.Annotations = map[string]string{"a b": "x"}
		p.call("annotation", p.create(cm))
		cm.Annotations = map[string]string{"UPPER/Case": "any text\n"}
		p.call("case of an annotation", p.create(cm))
		p.call("update", p.patch(p.configMap("a"), merge(`{"metadata":{"labels":{"a b":"x"}}}`)))
	}},
	{"metadata: invalid owner references", func(p *probe) {
		owner := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "o", UID: "u", Controller: new(true)}
		other := owner
		other.UID = "v"
		noUID, noName, noKind, noVersion, badVersion := owner, owner, owner, owner, owner
		noUID.UID, noName.Name, noKind.Kind, noVersion.APIVersion, badVersion.APIVersion = "", "", "", "", "a/b/c"
		for _, c := range []struct {
			what string
			refs []metav1.OwnerReference
		}{
			{"two controllers", []metav1.OwnerReference{owner, other}}, {"no UID", []metav1.OwnerReference{noUID}},
			{"no name", []metav1.OwnerReference{noName}}, {"no kind", []metav1.OwnerReference{noKind}},
			{"no version", []metav1.OwnerReference{noVersion}}, {"version", []metav1.OwnerReference{badVersion}},
		} {
			cm, g := p.configMap("a"), p.gadget("a", nil)
			cm.OwnerReferences = c.refs
			g.SetOwnerReferences(c.refs)
			p.call(c.what, p.create(cm, client.DryRunAll))
			p.call("of a Gadget", p.create(g, client.DryRunAll))
		}
	}},
	{"metadata: invalid finalizers", func(p *probe) {
		for _, name := range []string{"plain", "a b", "example.com/a"} {
			cm, g := p.configMap("a"), p.gadget("a", nil)
			cm.Finalizers = []string{name}
			g.SetFinalizers([]string{name})
			p.call(name, p.create(cm, client.DryRunAll))
			p.call("of a Gadget", p.create(g, client.DryRunAll))
		}
	}},
	{"metadata: scope", func(p *probe) {
		room := p.room()
		room.SetNamespace(p.namespace)
		p.call("Room with a namespace", p.create(room))
		p.note("%q", room.GetNamespace())
		room.SetNamespace(p.namespace)
		p.call("get", p.get(room))
		p.note("%q", room.GetNamespace())
		for _, obj := range []client.Object{p.configMap("a"), p.gadget("a", nil)} {
			obj.SetNamespace("")
			p.call("without a namespace", p.create(obj))
			p.call("get", p.get(obj))
			p.call("update", p.update(obj))
			p.call("delete", p.remove(obj))
		}
	}},
}

func (p *probe) statefulSet(name string) *appsv1.StatefulSet {
	claim := corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data"}, Spec: claimSpec()}
	return &appsv1.StatefulSet{
		ObjectMeta: p.metadata(name),
		Spec: appsv1.StatefulSetSpec{
			Selector: selector(), Template: podTemplate(), ServiceName: "a",
			VolumeClaimTemplates: []corev1.PersistentVolumeClaim{claim},
		},
	}
}

// richDeployment has what is often used in a Pod.
func (p *probe) richDeployment(name string) *appsv1.Deployment {
	d := p.deployment(name)
	spec := &d.Spec.Template.Spec
	get := &corev1.Probe{ProbeHandler: corev1.ProbeHandler{
		HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromInt32(8080)},
	}}
	main := &spec.Containers[0]
	main.Image = "nginx:1.27"
	main.LivenessProbe, main.ReadinessProbe = get, &corev1.Probe{ProbeHandler: corev1.ProbeHandler{
		TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromString("web")},
	}}
	main.Ports = []corev1.ContainerPort{{ContainerPort: 8080, Name: "web"}}
	main.Resources = corev1.ResourceRequirements{Limits: resourceList("memory", "1024Mi")}
	main.Env = []corev1.EnvVar{
		{Name: "IP", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "status.podIP"}}},
	}
	main.VolumeMounts = []corev1.VolumeMount{{Name: "config", MountPath: "/config"}}
	byDigest := "example.com/init@sha256:" + strings.Repeat("0", 64)
	spec.InitContainers = []corev1.Container{{Name: "init", Image: byDigest}}
	spec.ServiceAccountName = "runner"
	spec.Volumes = []corev1.Volume{
		{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: "a"},
		}}},
		{Name: "secret", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "a"}}},
		{Name: "empty", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		{Name: "host", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/x"}}},
		{Name: "both", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
			Sources: []corev1.VolumeProjection{{
				ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token"},
			}},
		}}},
	}
	return d
}
