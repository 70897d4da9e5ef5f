// Reads what a Go program reads, rows that fill messages, and says what came.
//
//	go run . HOST emulator|dialed TABLE...
//
// With "emulator" it connects as BIGTABLE_EMULATOR_HOST makes it, which takes messages of up to
// 4 MiB; with "dialed" as a program that wants more: without credentials, and with the client's own
// limit of 256 MiB. One line a table: rows, cells and bytes, or the error.
package main

import (
	"context"
	"fmt"
	"log"
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

type count struct{ rows, cells, bytes int }

func (c *count) add(row bigtable.Row) bool {
	c.rows++
	for _, items := range row {
		for _, item := range items {
			c.cells++
			c.bytes += len(item.Value)
		}
	}
	return true
}

func scan(ctx context.Context, table *bigtable.Table, name string, options ...bigtable.ReadOption) {
	var c count
	err := table.ReadRows(ctx, bigtable.InfiniteRange(""), c.add, options...)
	if err != nil {
		fmt.Printf("%s failed: %v\n", name, err)
		return
	}
	fmt.Printf("%s %d %d %d\n", name, c.rows, c.cells, c.bytes)
}

func main() {
	ctx := context.Background()
	client, err := bigtable.NewClientWithConfig(ctx, "p", "i", bigtable.ClientConfig{
		MetricsProvider: bigtable.NoopMetricsProvider{},
	}, connection(os.Args[1], os.Args[2])...)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	for _, name := range os.Args[3:] {
		table := client.Open(name)
		scan(ctx, table, name)
		scan(ctx, table, name+"/reversed", bigtable.ReverseScan())
		scan(ctx, table, name+"/limited", bigtable.LimitRows(1))
	}
}
