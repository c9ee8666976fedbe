resources:
- settings.yaml
- deployment.yaml
labels:
- pairs:
    app.kubernetes.io/name: placeholder
    app.kubernetes.io/instance: {{ name }}
  includeSelectors: true
