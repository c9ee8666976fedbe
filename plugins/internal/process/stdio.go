package process

import (
	"context"
	"io"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/types/known/emptypb"
)

// stdioData is the number of the field of a message of go-plugin that has what was written.
const stdioData = 2

// copyOutput copies what a plugin that is built with go-plugin writes to its standard output and error. Such a plugin
// sends that by its connection, and waits until somebody reads it. Other plugins do not know the call.
func copyOutput(ctx context.Context, connection grpc.ClientConnInterface, to *lines) {
	stream, err := connection.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, "/plugin.GRPCStdio/StreamStdio")
	if err != nil {
		return
	}
	if stream.SendMsg(&emptypb.Empty{}) != nil || stream.CloseSend() != nil {
		return
	}
	output := &throttle{from: &stdioReader{stream: stream}, done: ctx.Done()}
	_, _ = io.Copy(to, output) // the plugin has ended
}

// stdioReader reads from the messages of a stream.
type stdioReader struct {
	stream grpc.ClientStream
	rest   []byte
}

func (r *stdioReader) Read(into []byte) (int, error) {
	for len(r.rest) == 0 {
		message := &emptypb.Empty{}
		if err := r.stream.RecvMsg(message); err != nil {
			return 0, io.EOF
		}
		r.rest = fieldOf(message.ProtoReflect().GetUnknown(), stdioData)
	}
	n := copy(into, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// fieldOf returns a field with bytes of an encoded message, or nil.
func fieldOf(message []byte, field protowire.Number) []byte {
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return nil
		}
		message = message[n:]
		if number == field && kind == protowire.BytesType {
			value, n := protowire.ConsumeBytes(message)
			if n < 0 {
				return nil
			}
			return value
		}
		if n = protowire.ConsumeFieldValue(number, kind, message); n < 0 {
			return nil
		}
		message = message[n:]
	}
	return nil
}
