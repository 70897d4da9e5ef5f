package main

// Change streams, by the generated stubs, which are all that the library for Go has of them.

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"cloud.google.com/go/bigtable"
	"cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

const streamed = "changes"

// stub is a connection of its own, since the library keeps its.
func stub() (bigtablepb.BigtableClient, *grpc.ClientConn, error) {
	connection, err := grpc.NewClient(os.Getenv("BIGTABLE_EMULATOR_HOST"),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, nil, err
	}
	return bigtablepb.NewBigtableClient(connection), connection, nil
}

func (p *program) streamedName() string {
	return fmt.Sprintf("projects/%s/instances/%s/tables/%s", p.project, instance, streamed)
}

func (p *program) initialPartitions(ctx context.Context,
	client bigtablepb.BigtableClient) ([]*bigtablepb.StreamPartition, error) {
	request := bigtablepb.GenerateInitialChangeStreamPartitionsRequest{TableName: p.streamedName()}
	stream, err := client.GenerateInitialChangeStreamPartitions(ctx, &request)
	if err != nil {
		return nil, err
	}
	var partitions []*bigtablepb.StreamPartition
	for {
		answer, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return partitions, nil
		}
		if err != nil {
			return nil, err
		}
		partitions = append(partitions, answer.Partition)
	}
}

// put notes a chunk of a change in words. A value comes in pieces if it is large.
func put(words, value *bytes.Buffer, chunk *bigtablepb.ReadChangeStreamResponse_MutationChunk) {
	switch mutation := chunk.Mutation.Mutation.(type) {
	case *bigtablepb.Mutation_SetCell_:
		value.Write(mutation.SetCell.Value)
		if info := chunk.ChunkInfo; info == nil || info.LastChunk {
			fmt.Fprintf(words, " set %s %d", mutation.SetCell.ColumnQualifier, value.Len())
			value.Reset()
		}
	case *bigtablepb.Mutation_DeleteFromColumn_:
		fmt.Fprintf(words, " delete %s", mutation.DeleteFromColumn.ColumnQualifier)
	case *bigtablepb.Mutation_DeleteFromFamily_:
		fmt.Fprintf(words, " delete family %s", mutation.DeleteFromFamily.FamilyName)
	default:
		fmt.Fprintf(words, " %T", mutation)
	}
}

// told is what a stream says until it closes: its changes in words, and the token of each.
func told(stream grpc.ServerStreamingClient[bigtablepb.ReadChangeStreamResponse]) (
	changes, tokens []string, err error) {
	var words, value bytes.Buffer
	for {
		answer, err := stream.Recv()
		if err != nil {
			return nil, nil, err
		}
		if end := answer.GetCloseStream(); end != nil {
			return changes, tokens, same("the close", end.Status.GetCode(), int32(0))
		}
		change := answer.GetDataChange()
		if change == nil {
			continue
		}
		words.Write(change.RowKey)
		for _, chunk := range change.Chunks {
			put(&words, &value, chunk)
		}
		if change.Done {
			changes, tokens = append(changes, words.String()), append(tokens, change.Token)
			words.Reset()
		}
	}
}

func (p *program) writeChanges(ctx context.Context) error {
	table := p.data.Open(streamed)
	first, second := bigtable.NewMutation(), bigtable.NewMutation()
	first.Set("f", "large", 1000, bytes.Repeat([]byte("x"), 5*megabyte))
	first.DeleteCellsInColumn("f", "small")
	first.DeleteCellsInFamily("g")
	second.Set("g", "q", 1000, []byte("v"))
	gone := bigtable.NewMutation()
	gone.DeleteRow()
	update := bigtable.NewReadModifyWrite()
	update.AppendValue("f", "q", []byte("xyz"))
	_, err := table.ApplyReadModifyWrite(ctx, "c", update)
	return errors.Join(err, table.Apply(ctx, "d", first), table.Apply(ctx, "e", second),
		table.Apply(ctx, "e", gone))
}

func (p *program) changeStreams(ctx context.Context) error {
	configuration := bigtable.TableConf{TableID: streamed, SplitKeys: []string{"m"},
		ColumnFamilies:        map[string]bigtable.Family{"f": {}, "g": {}},
		ChangeStreamRetention: 24 * time.Hour}
	if err := p.tables.CreateTableFromConf(ctx, &configuration); err != nil {
		return err
	}
	start := timestamppb.Now()
	if err := p.writeChanges(ctx); err != nil {
		return err
	}
	client, connection, err := stub()
	if err != nil {
		return err
	}
	defer connection.Close()
	partitions, err := p.initialPartitions(ctx, client)
	if err = errors.Join(err, same("partitions", len(partitions), 2)); err != nil {
		return err
	}
	end := timestamppb.New(time.Now().Add(500 * time.Millisecond))
	request := bigtablepb.ReadChangeStreamRequest{TableName: p.streamedName(),
		Partition: partitions[0], EndTime: end, HeartbeatDuration: durationpb.New(time.Second),
		StartFrom: &bigtablepb.ReadChangeStreamRequest_StartTime{StartTime: start}}
	all := []string{"c set q 3", "d set large 5242880 delete small delete family g", "e set q 1",
		"e delete family g"}
	tokens, err := p.readChanges(ctx, client, &request, all)
	if err != nil {
		return err
	}
	from := bigtablepb.StreamContinuationToken{Partition: partitions[0], Token: tokens[1]}
	request.StartFrom = &bigtablepb.ReadChangeStreamRequest_ContinuationTokens{
		ContinuationTokens: &bigtablepb.StreamContinuationTokens{
			Tokens: []*bigtablepb.StreamContinuationToken{&from}}}
	if _, err = p.readChanges(ctx, client, &request, all[2:]); err != nil {
		return err
	}
	return p.tables.UpdateTableDisableChangeStream(ctx, streamed)
}

// readChanges gives the token of each.
func (p *program) readChanges(ctx context.Context, client bigtablepb.BigtableClient,
	request *bigtablepb.ReadChangeStreamRequest, expected []string) ([]string, error) {
	stream, err := client.ReadChangeStream(ctx, request, grpc.MaxCallRecvMsgSize(256*megabyte))
	if err != nil {
		return nil, err
	}
	changes, tokens, err := told(stream)
	return tokens, errors.Join(err, same("changes", changes, expected))
}
