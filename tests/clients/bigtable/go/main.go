// Drives a Bigtable server by Google's library for Go, cloud.google.com/go/bigtable, as
// applications do.
//
//	BIGTABLE_EMULATOR_HOST=127.0.0.1:8086 go run . PROJECT
//	go run . read HOST emulator|dialed TABLE...
//	go run . failover HOST,... TABLE PROFILE
//	go run . await HOST TABLE
//
// Prints a line for each thing that was as it should be, and ends with 1 if one was not; or reads
// tables of project p and instance i: messages.go; or writes while clusters come and go:
// failover.go.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"reflect"
	"time"

	"cloud.google.com/go/bigtable"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

const (
	instance = "orders"
	cluster  = "orders-c1"
	patience = 4 * time.Minute
	megabyte = 1 << 20
)

// program is what all checks share: the clients, and a table with the families f and g.
type program struct {
	project   string
	instances *bigtable.InstanceAdminClient
	tables    *bigtable.AdminClient
	data      *bigtable.Client
	table     *bigtable.Table
}

type check struct {
	name string
	run  func(context.Context) error
}

// same says what differs, if anything does.
func same(what string, got, want any) error {
	if !reflect.DeepEqual(got, want) {
		return fmt.Errorf("%s: got %v, want %v", what, got, want)
	}
	return nil
}

// openLarge dials as production's client is dialed: BIGTABLE_EMULATOR_HOST leaves gRPC's limit of
// 4 MiB a message.
func (p *program) openLarge(ctx context.Context) (*bigtable.Client, error) {
	connection, err := grpc.NewClient(os.Getenv("BIGTABLE_EMULATOR_HOST"),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(
			grpc.MaxCallRecvMsgSize(256*megabyte), grpc.MaxCallSendMsgSize(256*megabyte)))
	if err != nil {
		return nil, err
	}
	return bigtable.NewClient(ctx, p.project, instance, option.WithGRPCConn(connection))
}

func (p *program) open(ctx context.Context) error {
	var errs [3]error
	p.instances, errs[0] = bigtable.NewInstanceAdminClient(ctx, p.project)
	p.tables, errs[1] = bigtable.NewAdminClient(ctx, p.project, instance)
	p.data, errs[2] = bigtable.NewClient(ctx, p.project, instance)
	return errors.Join(errs[:]...)
}

func (p *program) createTable(ctx context.Context, table string, families ...string) error {
	configuration := bigtable.TableConf{TableID: table, ColumnFamilies: map[string]bigtable.Family{}}
	for _, family := range families {
		configuration.ColumnFamilies[family] = bigtable.Family{GCPolicy: bigtable.NoGcPolicy()}
	}
	return p.tables.CreateTableFromConf(ctx, &configuration)
}

func main() {
	log.SetFlags(0)
	if len(os.Args) > 4 && os.Args[1] == "read" {
		if err := readTables(os.Args[2], os.Args[3], os.Args[4:]); err != nil {
			log.Fatal(err)
		}
		return
	}
	if len(os.Args) > 3 && (os.Args[1] == "failover" || os.Args[1] == "await") {
		if err := clusters(os.Args[1:]); err != nil {
			log.Fatal(err)
		}
		return
	}
	if len(os.Args) != 2 {
		log.Fatal("usage: bigtable PROJECT | bigtable read HOST emulator|dialed TABLE...")
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	p := &program{project: os.Args[1]}
	if err := p.open(ctx); err != nil {
		log.Fatal(err)
	}
	failed := 0
	for _, each := range []check{
		{"an instance and its clusters", p.anInstance},
		{"app profiles", p.appProfiles},
		{"tables and families", p.tablesAndFamilies},
		{"authorized views", p.authorizedViews},
		{"backups", p.backups},
		{"logical views", p.logicalViews},
		{"writes and what they refuse", p.writes},
		{"conditions, increments, appends", p.atomics},
		{"aggregates", p.aggregates},
		{"filters", p.filters},
		{"ranges, both ways", p.ranges},
		{"bulk writes", p.bulk},
		{"wide and long scans", p.scans},
		{"large cells", p.largeCells},
		{"change streams", p.changeStreams},
		{"SQL and its parameters", p.parameters},
		{"SQL over a table", p.sqlOfTable},
		{"materialized views", p.materializedViews},
		{"the end of the instance", p.deleteInstance},
	} {
		if err := each.run(ctx); err != nil {
			log.Printf("FAILED %s: %v", each.name, err)
			failed++
			continue
		}
		fmt.Println("ok", each.name)
	}
	if failed > 0 {
		os.Exit(1)
	}
}
