package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
)

// contract has the messages of the contract, as they were read from its file.
type contract struct {
	plugin protoreflect.ServiceDescriptor
}

// readContract reads the file espalier_plugins_v1.binpb.
func readContract(path string) (contract, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return contract{}, fmt.Errorf("unable to read the contract: %w", err)
	}
	set := &descriptorpb.FileDescriptorSet{}
	if err := proto.Unmarshal(content, set); err != nil {
		return contract{}, fmt.Errorf("unable to decode the contract %s: %w", path, err)
	}
	files, err := protodesc.NewFiles(set)
	if err != nil {
		return contract{}, fmt.Errorf("unable to decode the contract %s: %w", path, err)
	}
	return pluginIn(files, path)
}

func pluginIn(files *protoregistry.Files, path string) (contract, error) {
	found, err := files.FindDescriptorByName("espalier.plugins.v1.Plugin")
	if err != nil {
		return contract{}, fmt.Errorf("the contract %s is another one: %w", path, err)
	}
	plugin, is := found.(protoreflect.ServiceDescriptor)
	if !is {
		return contract{}, fmt.Errorf("the contract %s is another one: Plugin is no service", path)
	}
	return contract{plugin: plugin}, nil
}

// answers has a function for each method of the contract. They deal in JSON.
type answers interface {
	answer(method string, request []byte) (any, error)
}

// service returns what gRPC has to know to have a plugin answer.
func (c contract) service(plugin answers) *grpc.ServiceDesc {
	service := &grpc.ServiceDesc{ServiceName: string(c.plugin.FullName())}
	for i := range c.plugin.Methods().Len() {
		method := c.plugin.Methods().Get(i)
		service.Methods = append(service.Methods, grpc.MethodDesc{
			MethodName: string(method.Name()),
			Handler: func(
				_ any, _ context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor,
			) (any, error) {
				return call(plugin, method, decode)
			},
		})
	}
	return service
}

// call has a plugin answer one call.
func call(plugin answers, method protoreflect.MethodDescriptor, decode func(any) error) (any, error) {
	request, response := dynamicpb.NewMessage(method.Input()), dynamicpb.NewMessage(method.Output())
	if err := decode(request); err != nil {
		return nil, err
	}
	text, err := protojson.Marshal(request)
	if err != nil {
		return nil, err
	}
	answer, err := plugin.answer(string(method.Name()), text)
	if err != nil {
		return nil, err
	}
	if text, err = json.Marshal(answer); err != nil {
		return nil, err
	}
	return response, protojson.Unmarshal(text, response)
}
