package plugins

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/internal/panics"
	"github.com/espalier-dev/espalier/plugins/internal/protocol"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// server answers the calls of a host with a plugin.
type server struct {
	protocol.UnimplementedPluginServer
	plugin Plugin
}

// Describe says what the plugin provides.
func (s server) Describe(context.Context, *protocol.DescribeRequest) (*protocol.DescribeResponse, error) {
	response := &protocol.DescribeResponse{Category: s.plugin.Category}
	for _, t := range s.plugin.Types {
		response.Types = append(response.Types, &protocol.Type{Name: t.Name, Versions: t.Versions})
	}
	for _, definition := range s.plugin.Definitions {
		text, err := json.Marshal(definition)
		if err != nil {
			return nil, status.Errorf(codes.Internal, "unable to encode the definition of a kind: %s", err)
		}
		response.Definitions = append(response.Definitions, text)
	}
	return response, nil
}

// Dependents asks the function of the author.
func (s server) Dependents(
	ctx context.Context, request *protocol.DependentsRequest,
) (*protocol.DependentsResponse, error) {
	dependents, err := s.ask(ctx, request)
	if err == nil {
		return s.encode(dependents)
	}
	var notReady *espalier.NotReadyError
	var invalid *InvalidError
	switch {
	case errors.As(err, &invalid):
		return &protocol.DependentsResponse{Outcome: &protocol.DependentsResponse_Invalid{
			Invalid: &protocol.Invalid{Messages: invalid.Messages}}}, nil
	case errors.As(err, &notReady):
		return &protocol.DependentsResponse{Outcome: &protocol.DependentsResponse_NotReady{
			NotReady: &protocol.NotReady{
				Reason: notReady.Reason, Message: notReady.Message,
				RetryAfterSeconds: uint32(notReady.Delay.Round(time.Second) / time.Second),
			}}}, nil
	}
	return nil, status.Error(codes.Internal, err.Error())
}

// ask calls the function of the author. A panic is an error.
func (s server) ask(ctx context.Context, request *protocol.DependentsRequest) (_ []*Dependent, err error) {
	asked := s.plugin.typeCalled(request.GetType())
	if asked == nil {
		return nil, fmt.Errorf("the plugin has no type %q", request.GetType())
	}
	defer func() {
		if value := recover(); value != nil {
			err = fmt.Errorf("the function of the type %q %w", request.GetType(), panics.Recovered(ctx, value))
		}
	}()
	owner := request.GetOwner()
	return asked.Dependents(ctx, Request{
		Type: asked.Name, Version: request.GetVersion(), Values: request.GetValues(),
		Owner: Owner{
			APIVersion: owner.GetApiVersion(), Kind: owner.GetKind(),
			Namespace: owner.GetNamespace(), Name: owner.GetName(), Spec: owner.GetSpec(),
		},
	})
}

// encode returns the answer for dependents.
func (s server) encode(dependents []*Dependent) (*protocol.DependentsResponse, error) {
	scheme := s.plugin.scheme()
	all := &protocol.Dependents{}
	for i, dependent := range dependents {
		if dependent == nil {
			return nil, status.Errorf(codes.Internal, "the dependent %d is nil", i)
		}
		if dependent.dropsAll {
			all.DropsAll = true
			continue
		}
		item, err := dependent.encode(scheme)
		if err != nil {
			return nil, status.Error(codes.Internal, err.Error())
		}
		all.Items = append(all.Items, item)
	}
	return &protocol.DependentsResponse{Outcome: &protocol.DependentsResponse_Dependents{Dependents: all}}, nil
}
