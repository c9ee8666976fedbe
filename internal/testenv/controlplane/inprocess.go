package controlplane

import (
	"context"
	"fmt"
	"os"
	"strconv"

	"github.com/espalier-dev/espalier/testing/simulation/cluster"
)

// Real reports whether Start runs etcd and kube-apiserver, because the environment variable REAL is true.
func Real() bool {
	real, err := strconv.ParseBool(os.Getenv("REAL"))
	return err == nil && real
}

// startInProcess starts the in-process server. If it fails, nothing is left running.
func (e *Environment) startInProcess(ctx context.Context, options Options) error {
	if lacking := options.lacking(); lacking != "" {
		return fmt.Errorf("the in-process server has no %s: set REAL=true to run kube-apiserver", lacking)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	e.inProcess = options.inProcess()
	config, err := e.inProcess.Start()
	if err != nil {
		return fmt.Errorf("the in-process server: %w", err)
	}
	e.config = withoutRateLimit(config)
	return nil
}

// lacking returns what the options ask for and the in-process server has not, or nothing.
func (o Options) lacking() string {
	switch {
	case o.Scheduler:
		return "kube-scheduler"
	case o.Nodes > 0:
		return "nodes of kwok"
	case o.RoleAggregation:
		return "controller that aggregates ClusterRoles"
	}
	return ""
}

// inProcess returns a cluster without the stand-ins for controllers that the options do not ask for.
func (o Options) inProcess() *cluster.Environment {
	c := &cluster.Environment{CRDs: o.CRDs}
	switch {
	case o.Jobs || o.Workloads:
		c.Workloads = true
		c.Without = []string{"kube-scheduler", "kubelet", "cloud-controller-manager", "cert-manager-cainjector",
			"Service", "PersistentVolumeClaim", "PersistentVolume", "HorizontalPodAutoscaler"}
		if !o.Workloads {
			c.Without = append(c.Without, "Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "CronJob")
		}
	case o.GarbageCollection || o.NamespaceDeletion:
	default:
		c.Without = []string{"kube-controller-manager"}
	}
	return c
}
