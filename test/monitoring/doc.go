// Package monitoring tests the alert rules and the dashboard in metrics/monitoring with the metrics of operators that
// run in simulations, and with the parser and the engine of Prometheus. It writes the table of docs/alerts.md.
package monitoring
