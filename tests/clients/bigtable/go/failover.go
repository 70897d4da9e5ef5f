// What applications do while clusters come and go: many writers, by clients that know all servers'
// addresses, and waiting until what was written is everywhere.
package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"cloud.google.com/go/bigtable"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
)

const (
	writers  = 64
	deadline = 10 * time.Second
)

// dialAll connects to the first of the addresses that answers, as gRPC does by itself.
func dialAll(addresses []string) (*grpc.ClientConn, error) {
	known := manual.NewBuilderWithScheme("servers")
	state := resolver.State{}
	for _, each := range addresses {
		state.Addresses = append(state.Addresses, resolver.Address{Addr: each})
	}
	known.InitialState(state)
	return grpc.NewClient("servers:///", grpc.WithResolvers(known), grpc.WithNoProxy(),
		grpc.WithAuthority("servers"), grpc.WithTransportCredentials(insecure.NewCredentials()))
}

func openTable(
	ctx context.Context, addresses []string, table, profile string,
) (*bigtable.Table, error) {
	connection, err := dialAll(addresses)
	if err != nil {
		return nil, err
	}
	client, err := bigtable.NewClientWithConfig(ctx, "p", "spread", bigtable.ClientConfig{
		AppProfile: profile, MetricsProvider: bigtable.NoopMetricsProvider{},
	}, option.WithGRPCConn(connection))
	if err != nil {
		return nil, err
	}
	return client.Open(table), nil
}

// writeRows writes one row after the other until done is closed, and prints each key that was
// acknowledged; the library's own retries are all that there are.
func writeRows(table *bigtable.Table, number int, done <-chan struct{}, print func(string)) {
	for i := 0; ; i++ {
		select {
		case <-done:
			return
		default:
		}
		key := fmt.Sprintf("go-%02d-%06d", number, i)
		mutation := bigtable.NewMutation()
		mutation.Set("f", "q", bigtable.Timestamp(1000), []byte("v"))
		ctx, cancel := context.WithTimeout(context.Background(), deadline)
		err := table.Apply(ctx, key, mutation)
		cancel()
		if err != nil {
			print(fmt.Sprintf("failed %s: %v", key, err))
			return
		}
		print(key)
	}
}

// failover writes to the table of project p and instance spread until its input ends.
func failover(addresses []string, table, profile string) error {
	opened, err := openTable(context.Background(), addresses, table, profile)
	if err != nil {
		return err
	}
	var lock sync.Mutex
	var running sync.WaitGroup
	output := bufio.NewWriter(os.Stdout)
	done := make(chan struct{})
	print := func(line string) {
		lock.Lock()
		defer lock.Unlock()
		fmt.Fprintln(output, line)
		output.Flush()
	}
	for number := range writers {
		running.Go(func() { writeRows(opened, number, done, print) })
	}
	_, err = io.Copy(io.Discard, os.Stdin)
	close(done)
	running.Wait()
	return err
}

// await returns when all that has been written to the table is at all clusters.
func await(address, table string) error {
	os.Setenv("BIGTABLE_EMULATOR_HOST", address)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	client, err := bigtable.NewAdminClient(ctx, "p", "spread")
	if err != nil {
		return err
	}
	return client.WaitForReplication(ctx, table)
}

// clusters runs one of these two.
func clusters(arguments []string) error {
	if arguments[0] == "await" {
		return await(arguments[1], arguments[2])
	}
	return failover(strings.Split(arguments[1], ","), arguments[2], arguments[3])
}
