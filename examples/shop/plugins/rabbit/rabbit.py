#!/usr/bin/env python3
"""A plugin for the capability queue/rabbit, as a sidecar: python3 rabbit.py CONTRACT [--shared NAMESPACE] [--drops-all]

It has nothing of Espalier but the contract: CONTRACT is the file espalier_plugins_v1.binpb. The environment variable
ESPALIER_PLUGIN_SOCKET has the path of the socket. It needs the packages grpcio and protobuf.
"""

import argparse
import json
import os
import re
import signal
from concurrent import futures

import grpc
from google.protobuf import descriptor_pb2, message_factory

PACKAGE = "espalier.plugins.v1."
NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
BROKER = "rabbit.messaging.svc.cluster.local"


def messages_of(path):
    """Returns the classes of the messages of the contract, by their names."""
    files = descriptor_pb2.FileDescriptorSet()
    with open(path, "rb") as contract:
        files.ParseFromString(contract.read())
    return message_factory.GetMessages(files.file)


class Queue:
    """Says what the queues of an owner consist of."""

    def __init__(self, messages, shared, drops_all):
        self.messages = messages
        self.shared = shared
        self.drops_all = drops_all

    def new(self, message, /, **fields):
        return self.messages[PACKAGE + message](**fields)

    def describe(self, _request, _context):
        return self.new("DescribeResponse", category="queue", types=[self.new("Type", name="rabbit")])

    def dependents(self, request, _context):
        owner = request.owner
        print("asked for %s/%s" % (owner.namespace, owner.name), flush=True)
        names = (json.loads(owner.spec or b"{}").get("queue") or {}).get("names") or []
        problems = ["queue.names has %r, which is no name of a queue" % n for n in names if not NAME.fullmatch(n)]
        if problems:
            return self.new("DependentsResponse", invalid=self.new("Invalid", messages=problems))
        items = [
            self.new(
                "Dependent", name=name, api_version=wanted["apiVersion"], kind=wanted["kind"],
                object=json.dumps(wanted).encode(),
            )
            for name, wanted in (("broker", self.broker(owner)), ("definitions", self.definitions(owner, names)))
        ]
        dependents = self.new("Dependents", items=items, drops_all=self.drops_all)
        return self.new("DependentsResponse", dependents=dependents)

    def broker(self, owner):
        return {
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": owner.name + "-queue"},
            "spec": {"type": "ExternalName", "externalName": BROKER},
        }

    def definitions(self, owner, names):
        host = owner.namespace + "." + owner.name
        queues = [{"name": name, "vhost": host, "durable": True} for name in names]
        definitions = json.dumps({"vhosts": [{"name": host}], "queues": queues}, sort_keys=True, separators=(",", ":"))
        metadata = {"name": owner.name + "-queue"}
        if self.shared:
            metadata["namespace"] = self.shared
        return {
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata,
            "data": {"definitions.json": definitions},
        }


def handler(function, request):
    return grpc.unary_unary_rpc_method_handler(
        function,
        request_deserializer=request.FromString,
        response_serializer=lambda answer: answer.SerializeToString(),
    )


def new_server(messages, plugin):
    """Returns a server of the contract, and of the health of the service "plugin"."""
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=8))
    serving = grpc.unary_unary_rpc_method_handler(lambda _request, _context: b"\x08\x01")  # its field status is SERVING
    server.add_generic_rpc_handlers((
        grpc.method_handlers_generic_handler(PACKAGE + "Plugin", {
            "Describe": handler(plugin.describe, messages[PACKAGE + "DescribeRequest"]),
            "Dependents": handler(plugin.dependents, messages[PACKAGE + "DependentsRequest"]),
        }),
        grpc.method_handlers_generic_handler("grpc.health.v1.Health", {"Check": serving}),
    ))
    return server


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("contract", help="the file espalier_plugins_v1.binpb")
    arguments.add_argument("--shared", metavar="NAMESPACE", help="put the definitions where the broker is")
    arguments.add_argument("--drops-all", action="store_true", help="take the place of another plugin for rabbit")
    given = arguments.parse_args()
    messages = messages_of(given.contract)
    server = new_server(messages, Queue(messages, given.shared, given.drops_all))
    server.add_insecure_port("unix:" + os.environ["ESPALIER_PLUGIN_SOCKET"])
    server.start()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: server.stop(grace=1))
    server.wait_for_termination()


if __name__ == "__main__":
    main()
