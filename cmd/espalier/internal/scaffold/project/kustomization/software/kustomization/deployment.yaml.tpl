apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ name }}
  annotations:
    espalier.dev/apply-order: "1" # a later wave than the settings
spec:
  replicas: {{ .replicas }}
  template:
    spec:
      containers:
      - name: main
        image: {{ .image | quote }}
        envFrom:
        - configMapRef:
            name: {{ name }}
