package server

import (
	_ "k8s.io/apiextensions-apiserver/pkg/apiserver"
	_ "k8s.io/apiserver/pkg/server"
	_ "k8s.io/apiserver/pkg/storage/testing"
	_ "sigs.k8s.io/controller-runtime/pkg/manager"
	_ "github.com/espalier-dev/espalier/reconcilers"
)
