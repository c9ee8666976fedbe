// Command protocol generates the Go code for the contract of plugins, and compiles the contract for languages that read
// it when they run: into a FileDescriptorSet beside it. It needs nothing but Go: the compiler of .proto files and both
// generators are modules, whose versions are in go.mod.
//
//	go run . PROTO FOLDER
package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/bufbuild/protocompile"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: protocol PROTO FOLDER")
		os.Exit(2)
	}
	if err := generate(context.Background(), os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "protocol:", err)
		os.Exit(1)
	}
}

// generate writes the Go files for a .proto file into a folder.
func generate(ctx context.Context, source, folder string) error {
	name := filepath.Base(source)
	compiler := protocompile.Compiler{
		Resolver:       &protocompile.SourceResolver{ImportPaths: []string{filepath.Dir(source)}},
		SourceInfoMode: protocompile.SourceInfoStandard,
	}
	files, err := compiler.Compile(ctx, name)
	if err != nil {
		return fmt.Errorf("unable to compile %s: %w", source, err)
	}
	if err := writeDescriptors(files[0], source); err != nil {
		return err
	}
	request, err := proto.Marshal(&pluginpb.CodeGeneratorRequest{
		FileToGenerate:  []string{name},
		Parameter:       proto.String("paths=source_relative"),
		ProtoFile:       []*descriptorpb.FileDescriptorProto{protodesc.ToFileDescriptorProto(files[0])},
		CompilerVersion: &pluginpb.Version{Major: proto.Int32(0), Minor: proto.Int32(0), Patch: proto.Int32(0)},
	})
	if err != nil {
		return err
	}
	for _, generator := range []string{"protoc-gen-go", "protoc-gen-go-grpc"} {
		if err := run(ctx, generator, request, folder); err != nil {
			return fmt.Errorf("%s is unable to generate code for %s: %w", generator, source, err)
		}
	}
	return nil
}

// writeDescriptors writes the FileDescriptorSet of a file, without comments, beside its source.
func writeDescriptors(file protoreflect.FileDescriptor, source string) error {
	descriptor := protodesc.ToFileDescriptorProto(file)
	descriptor.SourceCodeInfo = nil
	set := &descriptorpb.FileDescriptorSet{File: []*descriptorpb.FileDescriptorProto{descriptor}}
	content, err := proto.MarshalOptions{Deterministic: true}.Marshal(set)
	if err != nil {
		return err
	}
	return os.WriteFile(strings.TrimSuffix(source, ".proto")+".binpb", content, 0o644)
}

// run writes what a generator makes of a request.
func run(ctx context.Context, generator string, request []byte, folder string) error {
	command := exec.CommandContext(ctx, "go", "tool", generator)
	command.Stdin, command.Stderr = bytes.NewReader(request), os.Stderr
	output, err := command.Output()
	if err != nil {
		return err
	}
	response := &pluginpb.CodeGeneratorResponse{}
	if err := proto.Unmarshal(output, response); err != nil {
		return err
	}
	if response.Error != nil {
		return fmt.Errorf("%s", response.GetError())
	}
	for _, file := range response.GetFile() {
		path := filepath.Join(folder, file.GetName())
		if err := os.WriteFile(path, []byte(file.GetContent()), 0o644); err != nil {
			return err
		}
	}
	return nil
}
