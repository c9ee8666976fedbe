package registry

import (
	"net"
	"path"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
)

// validateVolumes requires names that differ. The name is that of the pod, if it has one: claims are made of it.
func validateVolumes(volumes []corev1.Volume, pod string, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range volumes {
		volume, path := &volumes[i], at.Index(i)
		errs = append(errs, requiredLabel(path.Child("name"), volume.Name)...)
		if slices.ContainsFunc(volumes[:i], func(v corev1.Volume) bool { return v.Name == volume.Name }) {
			errs = append(errs, field.Duplicate(path.Child("name"), volume.Name))
		}
		errs = append(errs, validateVolume(&volume.VolumeSource, path)...)
		if s := volume.ISCSI; s != nil {
			errs = append(errs, validateInitiator(s.InitiatorName, volume.Name, s.TargetPortal, path.Child("iscsi"))...)
		}
		if pod == "" {
			continue
		}
		if claim := pod + "-" + volume.Name; volume.Ephemeral != nil {
			errs = append(errs, invalid(path.Child("name"), volume.Name, subdomainName(claim, false))...)
		}
		if claim := volume.PersistentVolumeClaim; claim != nil && slices.ContainsFunc(volumes,
			func(v corev1.Volume) bool {
				return v.Ephemeral != nil && pod+"-"+v.Name == claim.ClaimName
			}) {
			errs = append(errs, field.Invalid(path.Child("persistentVolumeClaim", "claimName"), claim.ClaimName,
				"must not reference a PVC that gets created for an ephemeral volume"))
		}
	}
	return errs
}

// sourceCheck says what is wrong with a source of a volume, below the path of its field.
type sourceCheck struct {
	name string
	errs func(at *field.Path) field.ErrorList
}

// validateVolume requires one source with what identifies it.
func validateVolume(v *corev1.VolumeSource, at *field.Path) field.ErrorList {
	return validateOneSource(slices.Concat(fileSources(v), claimSources(v), networkSources(v), diskSources(v)), at)
}

func validateOneSource(sources []sourceCheck, at *field.Path) field.ErrorList {
	if len(sources) == 0 {
		return field.ErrorList{field.Required(at, "must specify a volume type")}
	}
	errs := sources[0].errs(at.Child(sources[0].name))
	for _, s := range sources[1:] {
		errs = append(errs, field.Forbidden(at.Child(s.name), "may not specify more than 1 volume type"))
	}
	return errs
}

// needs requires values of fields, which are given in pairs of name and value.
func needs(pairs ...string) func(at *field.Path) field.ErrorList {
	return func(at *field.Path) field.ErrorList {
		var errs field.ErrorList
		for pair := range slices.Chunk(pairs, 2) {
			errs = append(errs, required(at.Child(pair[0]), pair[1])...)
		}
		return errs
	}
}

func fileSources(v *corev1.VolumeSource) []sourceCheck {
	var s []sourceCheck
	if e := v.EmptyDir; e != nil {
		s = append(s, sourceCheck{"emptyDir", func(at *field.Path) field.ErrorList {
			return notNegativeAmount(at.Child("sizeLimit"), ptr.Deref(e.SizeLimit, zeroAmount))
		}})
	}
	if h := v.HostPath; h != nil {
		s = append(s, sourceCheck{"hostPath", func(at *field.Path) field.ErrorList {
			errs := append(required(at.Child("path"), h.Path), noBacksteps(h.Path, at.Child("path"))...)
			return append(errs, supported(at.Child("type"), ptr.Deref(h.Type, ""), corev1.HostPathUnset,
				corev1.HostPathDirectoryOrCreate, corev1.HostPathDirectory, corev1.HostPathFileOrCreate,
				corev1.HostPathFile, corev1.HostPathSocket, corev1.HostPathCharDev, corev1.HostPathBlockDev)...)
		}})
	}
	if g := v.GitRepo; g != nil {
		s = append(s, sourceCheck{"gitRepo", func(at *field.Path) field.ErrorList {
			return append(required(at.Child("repository"), g.Repository),
				descending(g.Directory, at.Child("directory"))...)
		}})
	}
	if c := v.Secret; c != nil {
		s = append(s, sourceCheck{"secret", func(at *field.Path) field.ErrorList {
			return append(required(at.Child("secretName"), c.SecretName), validateItems(c.Items, c.DefaultMode, at)...)
		}})
	}
	if c := v.ConfigMap; c != nil {
		s = append(s, sourceCheck{"configMap", func(at *field.Path) field.ErrorList {
			return append(required(at.Child("name"), c.Name), validateItems(c.Items, c.DefaultMode, at)...)
		}})
	}
	if d := v.DownwardAPI; d != nil {
		s = append(s, sourceCheck{"downwardAPI", func(at *field.Path) field.ErrorList {
			return append(validateMode(d.DefaultMode, at.Child("defaultMode")), validateDownwardFiles(d.Items, at)...)
		}})
	}
	if p := v.Projected; p != nil {
		s = append(s,
			sourceCheck{"projected", func(at *field.Path) field.ErrorList { return validateProjected(p, at) }})
	}
	if i := v.Image; i != nil {
		s = append(s, sourceCheck{"image", func(at *field.Path) field.ErrorList {
			return append(required(at.Child("reference"), i.Reference), validatePullPolicy(i.PullPolicy, at)...)
		}})
	}
	return s
}

func claimSources(v *corev1.VolumeSource) []sourceCheck {
	var s []sourceCheck
	if c := v.PersistentVolumeClaim; c != nil {
		s = append(s, sourceCheck{"persistentVolumeClaim", needs("claimName", c.ClaimName)})
	}
	if c := v.CSI; c != nil {
		s = append(s, sourceCheck{"csi", func(at *field.Path) field.ErrorList {
			errs := validateDriverName(c.Driver, at.Child("driver"))
			if ref := c.NodePublishSecretRef; ref != nil {
				errs = append(errs, requiredName(at.Child("nodePublishSecretRef", "name"), ref.Name)...)
			}
			return errs
		}})
	}
	if e := v.Ephemeral; e != nil {
		s = append(s, sourceCheck{"ephemeral", func(at *field.Path) field.ErrorList {
			at = at.Child("volumeClaimTemplate")
			if e.VolumeClaimTemplate == nil {
				return field.ErrorList{field.Required(at, "")}
			}
			meta := e.VolumeClaimTemplate.ObjectMeta
			errs := append(validateLabels(meta.Labels, at.Child("metadata", "labels")),
				apivalidation.ValidateAnnotations(meta.Annotations, at.Child("metadata", "annotations"))...)
			if rest := (metav1.ObjectMeta{Labels: meta.Labels, Annotations: meta.Annotations}); !isSame(meta, rest) {
				errs = append(errs,
					field.Forbidden(at.Child("metadata"), "cannot have more than labels and annotations"))
			}
			return append(errs, validateClaimSpec(&e.VolumeClaimTemplate.Spec, at.Child("spec"))...)
		}})
	}
	return s
}

// networkSources are those that a driver of CSI has taken the place of, for file systems.
func networkSources(v *corev1.VolumeSource) []sourceCheck {
	var s []sourceCheck
	if n := v.NFS; n != nil {
		s = append(s, sourceCheck{"nfs", func(at *field.Path) field.ErrorList { return validateNFS(n, at) }})
	}
	if g := v.Glusterfs; g != nil {
		s = append(s, sourceCheck{"glusterfs", needs("endpoints", g.EndpointsName, "path", g.Path)})
	}
	if c := v.CephFS; c != nil {
		s = append(s, sourceCheck{"cephfs", needs("monitors", few(c.Monitors))})
	}
	if a := v.AzureFile; a != nil {
		s = append(s, sourceCheck{"azureFile", needs("secretName", a.SecretName, "shareName", a.ShareName)})
	}
	if q := v.Quobyte; q != nil {
		s = append(s, sourceCheck{"quobyte", func(at *field.Path) field.ErrorList { return validateQuobyte(q, at) }})
	}
	if f := v.Flocker; f != nil {
		s = append(s, sourceCheck{"flocker", func(at *field.Path) field.ErrorList { return validateFlocker(f, at) }})
	}
	if o := v.StorageOS; o != nil {
		s = append(s, sourceCheck{"storageos", func(at *field.Path) field.ErrorList {
			errs := requiredLabel(at.Child("volumeName"), o.VolumeName)
			if o.VolumeNamespace != "" {
				errs = append(errs, requiredLabel(at.Child("volumeNamespace"), o.VolumeNamespace)...)
			}
			if o.SecretRef != nil {
				errs = append(errs, required(at.Child("secretRef", "name"), o.SecretRef.Name)...)
			}
			return errs
		}})
	}
	return s
}

// diskSources are those that a driver of CSI has taken the place of, for disks.
func diskSources(v *corev1.VolumeSource) []sourceCheck {
	var s []sourceCheck
	if d := v.GCEPersistentDisk; d != nil {
		s = append(s, sourceCheck{"gcePersistentDisk", withPartition(d.Partition, "pdName", d.PDName)})
	}
	if d := v.AWSElasticBlockStore; d != nil {
		s = append(s, sourceCheck{"awsElasticBlockStore", withPartition(d.Partition, "volumeID", d.VolumeID)})
	}
	if i := v.ISCSI; i != nil {
		s = append(s, sourceCheck{"iscsi", func(at *field.Path) field.ErrorList {
			chap := (i.DiscoveryCHAPAuth || i.SessionCHAPAuth) && i.SecretRef == nil
			return validateISCSI(i.TargetPortal, i.IQN, i.Lun, i.InitiatorName, chap, at)
		}})
	}
	if r := v.RBD; r != nil {
		s = append(s, sourceCheck{"rbd", needs("monitors", few(r.CephMonitors), "image", r.RBDImage)})
	}
	if c := v.Cinder; c != nil {
		s = append(s, sourceCheck{"cinder", func(at *field.Path) field.ErrorList {
			errs := required(at.Child("volumeID"), c.VolumeID)
			if c.SecretRef != nil {
				errs = append(errs, required(at.Child("secretRef", "name"), c.SecretRef.Name)...)
			}
			return errs
		}})
	}
	if f := v.FC; f != nil {
		s = append(s, sourceCheck{"fc", func(at *field.Path) field.ErrorList { return validateFC(f, at) }})
	}
	if f := v.FlexVolume; f != nil {
		s = append(s, sourceCheck{"flexVolume", func(at *field.Path) field.ErrorList {
			return validateFlex(f.Driver, f.Options, at)
		}})
	}
	if d := v.VsphereVolume; d != nil {
		s = append(s, sourceCheck{"vsphereVolume", needs("volumePath", d.VolumePath)})
	}
	if d := v.PhotonPersistentDisk; d != nil {
		s = append(s, sourceCheck{"photonPersistentDisk", needs("pdID", d.PdID)})
	}
	if d := v.PortworxVolume; d != nil {
		s = append(s, sourceCheck{"portworxVolume", needs("volumeID", d.VolumeID)})
	}
	if d := v.AzureDisk; d != nil {
		s = append(s,
			sourceCheck{"azureDisk", func(at *field.Path) field.ErrorList { return validateAzureDisk(d, at) }})
	}
	if d := v.ScaleIO; d != nil {
		s = append(s,
			sourceCheck{"scaleIO", needs("gateway", d.Gateway, "system", d.System, "volumeName", d.VolumeName)})
	}
	return s
}

// few returns a text that is empty if a list is.
func few(list []string) string { return strings.Repeat(".", min(len(list), 1)) }

func withPartition(partition int32, pairs ...string) func(at *field.Path) field.ErrorList {
	return func(at *field.Path) field.ErrorList {
		return append(needs(pairs...)(at), between(at.Child("partition"), &partition, 0, 255)...)
	}
}

func validateNFS(n *corev1.NFSVolumeSource, at *field.Path) field.ErrorList {
	errs := needs("server", n.Server, "path", n.Path)(at)
	if !path.IsAbs(n.Path) {
		errs = append(errs, field.Invalid(at.Child("path"), n.Path, "must be an absolute path"))
	}
	return errs
}

func validateQuobyte(q *corev1.QuobyteVolumeSource, at *field.Path) field.ErrorList {
	errs := needs("registry", q.Registry, "volume", q.Volume)(at)
	if len(q.Tenant) > 64 {
		return append(errs, field.TooLong(at.Child("tenant"), "", 64))
	}
	for pair := range strings.SplitSeq(q.Registry, ",") {
		if _, _, err := net.SplitHostPort(pair); err != nil {
			errs = append(errs, field.Invalid(at.Child("registry"), q.Registry, "must be host:port pairs"))
		}
	}
	return errs
}

func validateFlocker(f *corev1.FlockerVolumeSource, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if (f.DatasetName == "") == (f.DatasetUUID == "") {
		errs = append(errs, field.Required(at, "one of datasetName and datasetUUID is required"))
	}
	if strings.Contains(f.DatasetName, "/") {
		errs = append(errs, field.Invalid(at.Child("datasetName"), f.DatasetName, "must not contain '/'"))
	}
	return errs
}

// iscsiName is the form of names of initiators and targets, see RFC 3720.
var iscsiName = regexp.MustCompile(`^(iqn\.\d{4}-\d{2}\.([[:alnum:]-.]+)(:[^,;*&$|\s]+)$|` +
	`eui.[[:alnum:]]{16}$|naa.[[:alnum:]]{32}$)`)

func validateISCSI(portal, iqn string, lun int32, initiator *string, secret bool, at *field.Path) field.ErrorList {
	errs := append(needs("targetPortal", portal, "iqn", iqn)(at), between(at.Child("lun"), &lun, 0, 255)...)
	for name, value := range ordered(map[string]*string{"iqn": &iqn, "initiatorName": initiator}) {
		if value != nil && !iscsiName.MatchString(*value) {
			errs = append(errs, field.Invalid(at.Child(name), *value, "must be valid format"))
		}
	}
	if secret {
		errs = append(errs, field.Required(at.Child("secretRef"), ""))
	}
	return errs
}

// validateInitiator requires a volume whose name is short, if it has an initiator.
func validateInitiator(initiator *string, volume, portal string, at *field.Path) field.ErrorList {
	if initiator == nil || len(volume+":"+portal) <= 64 {
		return nil
	}
	return field.ErrorList{field.Invalid(at, portal,
		"total length of <volume name>:<iscsi.targetPortal> must be under 64")}
}

func validateFC(f *corev1.FCVolumeSource, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if (len(f.TargetWWNs) == 0) == (len(f.WWIDs) == 0) {
		errs = append(errs,
			field.Required(at.Child("targetWWNs"), "must specify either targetWWNs or wwids, but not both"))
	}
	if len(f.TargetWWNs) > 0 && f.Lun == nil {
		errs = append(errs, field.Required(at.Child("lun"), "lun is required if targetWWNs is specified"))
	}
	if len(f.TargetWWNs) > 0 {
		errs = append(errs, between(at.Child("lun"), f.Lun, 0, 255)...)
	}
	return errs
}

func validateFlex(driver string, options map[string]string, at *field.Path) field.ErrorList {
	errs := required(at.Child("driver"), driver)
	for key := range ordered(options) {
		domain, _, _ := strings.Cut(key, "/")
		if domain = "." + strings.ToLower(domain); strings.HasSuffix(domain, ".kubernetes.io") ||
			strings.HasSuffix(domain, ".k8s.io") {
			errs = append(errs, field.Invalid(at.Child("options").Key(key), key, "namespaces are reserved"))
		}
	}
	return errs
}

func validateAzureDisk(d *corev1.AzureDiskVolumeSource, at *field.Path) field.ErrorList {
	errs := needs("diskName", d.DiskName, "diskURI", d.DataDiskURI)(at)
	if d.CachingMode != nil {
		errs = append(errs, supported(at.Child("cachingMode"), *d.CachingMode, corev1.AzureDataDiskCachingNone,
			corev1.AzureDataDiskCachingReadOnly, corev1.AzureDataDiskCachingReadWrite)...)
	}
	if d.Kind == nil {
		return errs
	}
	errs = append(errs, supported(at.Child("kind"), *d.Kind, corev1.AzureSharedBlobDisk,
		corev1.AzureDedicatedBlobDisk, corev1.AzureManagedDisk)...)
	prefix := "https://"
	if *d.Kind == corev1.AzureManagedDisk {
		prefix = "/subscriptions/"
	}
	if !strings.HasPrefix(d.DataDiskURI, prefix) {
		errs = append(errs, field.Invalid(at.Child("diskURI"), d.DataDiskURI, "must begin with "+prefix))
	}
	return errs
}

func validateDriverName(driver string, at *field.Path) field.ErrorList {
	if driver == "" {
		return required(at, driver)
	}
	errs := invalid(at, driver, validation.IsDNS1123Subdomain(strings.ToLower(driver)))
	if len(driver) > 63 {
		errs = append(errs, field.TooLong(at, "", 63))
	}
	return errs
}
