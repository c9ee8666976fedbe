package readiness

import (
	_ "github.com/fluxcd/cli-utils/pkg/kstatus/status"
	_ "github.com/google/cel-go/cel"
)
