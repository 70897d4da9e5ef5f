// Drives a Datastore server by Google's libraries for Go: cloud.google.com/go/datastore, which
// speaks gRPC, and google.golang.org/api/datastore/v1, which speaks JSON over HTTP.
//
//	DATASTORE_EMULATOR_HOST=127.0.0.1:8086 go run . PROJECT grpc|rest
//
// Prints a line for each thing that was as it should be, and ends with 1 if one was not.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"reflect"
	"time"

	"cloud.google.com/go/datastore"
)

type check struct {
	name string
	run  func(context.Context) error
}

func runAll(checks []check) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for _, each := range checks {
		if err := each.run(ctx); err != nil {
			log.Fatalf("%s: %v", each.name, err)
		}
		fmt.Println("ok", each.name)
	}
}

// same says what differs, if anything does.
func same(what string, got, want any) error {
	if !reflect.DeepEqual(got, want) {
		return fmt.Errorf("%s: got %v, want %v", what, got, want)
	}
	return nil
}

func first(errors ...error) error {
	for _, err := range errors {
		if err != nil {
			return err
		}
	}
	return nil
}

func main() {
	log.SetFlags(0)
	if len(os.Args) != 3 {
		log.Fatal("usage: datastore PROJECT grpc|rest")
	}
	project, transport := os.Args[1], os.Args[2]
	if transport == "rest" {
		runAll(restChecks(project))
		return
	}
	client, err := datastore.NewClient(context.Background(), project)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	of := &grpcClient{client, project}
	runAll([]check{
		{"values of all types", of.values},
		{"inserts, updates, deletes", of.mutations},
		{"many keys", of.manyKeys},
		{"transforms", of.transforms},
		{"queries", of.queries},
		{"projections", of.projections},
		{"cursors", of.cursors},
		{"aggregations", of.aggregations},
		{"a missing index", of.missingIndex},
		{"a transaction that is run again", of.retries},
		{"transactions of many", of.contention},
		{"transactions that only read", of.readOnly},
		{"the past", of.past},
		{"ids", of.ids},
		{"databases and namespaces", of.partitions},
		{"explained queries", of.explained},
	})
}
