// Rows that fill messages, in tables that others made: reads them, and says what came.
package main

import (
	"context"
	"fmt"
	"os"

	"cloud.google.com/go/bigtable"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

func connection(host, way string) []option.ClientOption {
	if way == "emulator" {
		os.Setenv("BIGTABLE_EMULATOR_HOST", host)
		return nil
	}
	return []option.ClientOption{
		option.WithEndpoint(host),
		option.WithoutAuthentication(),
		option.WithGRPCDialOption(grpc.WithTransportCredentials(insecure.NewCredentials())),
	}
}

type sum struct{ rows, cells, bytes int }

func (s *sum) add(row bigtable.Row) bool {
	s.rows++
	for _, items := range row {
		for _, item := range items {
			s.cells++
			s.bytes += len(item.Value)
		}
	}
	return true
}

func scan(ctx context.Context, table *bigtable.Table, name string, options ...bigtable.ReadOption) {
	var s sum
	err := table.ReadRows(ctx, bigtable.InfiniteRange(""), s.add, options...)
	if err != nil {
		fmt.Printf("%s failed: %v\n", name, err)
		return
	}
	fmt.Printf("%s %d %d %d\n", name, s.rows, s.cells, s.bytes)
}

// readTables connects "emulator", as BIGTABLE_EMULATOR_HOST makes it, which takes messages of up to
// 4 MiB, or "dialed", as a program that wants more: without credentials, and with the client's own
// limit of 256 MiB. One line a table: rows, cells and bytes, or the error.
func readTables(host, way string, tables []string) error {
	ctx := context.Background()
	client, err := bigtable.NewClientWithConfig(ctx, "p", "i", bigtable.ClientConfig{
		MetricsProvider: bigtable.NoopMetricsProvider{},
	}, connection(host, way)...)
	if err != nil {
		return err
	}
	defer client.Close()
	for _, name := range tables {
		table := client.Open(name)
		scan(ctx, table, name)
		scan(ctx, table, name+"/reversed", bigtable.ReverseScan())
		scan(ctx, table, name+"/limited", bigtable.LimitRows(1))
	}
	return nil
}
