// What google.golang.org/api/datastore/v1 does: JSON over HTTP, message by message.
package main

import (
	"context"
	"errors"
	"net/http"
	"os"
	"strings"

	rest "google.golang.org/api/datastore/v1"
	"google.golang.org/api/googleapi"
	"google.golang.org/api/option"
)

type restClient struct {
	projects *rest.ProjectsService
	project  string
}

func restChecks(project string) []check {
	service, err := rest.NewService(context.Background(), option.WithoutAuthentication(),
		option.WithEndpoint("http://"+os.Getenv("DATASTORE_EMULATOR_HOST")+"/"))
	of := &restClient{project: project}
	connect := func(context.Context) error {
		if err == nil {
			of.projects = service.Projects
		}
		return err
	}
	return []check{
		{"a connection", connect},
		{"values of all types", of.values},
		{"queries and GQL", of.queries},
		{"aggregations", of.aggregations},
		{"transactions", of.transactions},
		{"ids", of.ids},
	}
}

func nameKey(kind, name string) *rest.Key {
	return &rest.Key{Path: []*rest.PathElement{{Kind: kind, Name: name}}}
}

func integer(n int64) rest.Value {
	return rest.Value{IntegerValue: n, ForceSendFields: []string{"IntegerValue"}}
}

func upsert(key *rest.Key, properties map[string]rest.Value) *rest.Mutation {
	return &rest.Mutation{Upsert: &rest.Entity{Key: key, Properties: properties}}
}

func (c *restClient) commit(ctx context.Context, mutations ...*rest.Mutation) error {
	request := &rest.CommitRequest{Mode: "NON_TRANSACTIONAL", Mutations: mutations}
	_, err := c.projects.Commit(c.project, request).Context(ctx).Do()
	return err
}

func (c *restClient) lookup(ctx context.Context, key *rest.Key) (*rest.LookupResponse, error) {
	request := &rest.LookupRequest{Keys: []*rest.Key{key}}
	return c.projects.Lookup(c.project, request).Context(ctx).Do()
}

func (c *restClient) values(ctx context.Context) error {
	key := nameKey("R", "é")
	put := map[string]rest.Value{
		"int": integer(0), "bool": {BooleanValue: true}, "double": {DoubleValue: 2.5},
		"text": {StringValue: "é😀", ExcludeFromIndexes: true}, "blob": {BlobValue: "AP8="},
		"time": {TimestampValue: "2024-02-29T01:02:03.456789Z"}, "null": {NullValue: "NULL_VALUE"},
		"point": {GeoPointValue: &rest.LatLng{Latitude: 52.5, Longitude: -9.25}},
		"key":   {KeyValue: nameKey("A", "b")},
		"list": {ArrayValue: &rest.ArrayValue{
			Values: []*rest.Value{{StringValue: "a"}, {DoubleValue: 1.5}}}},
		"inner": {EntityValue: &rest.Entity{Properties: map[string]rest.Value{"x": integer(1)}}},
	}
	if err := c.commit(ctx, upsert(key, put)); err != nil {
		return err
	}
	answer, err := c.lookup(ctx, key)
	if err != nil || len(answer.Found) != 1 {
		return errors.Join(err, errors.New("not found"))
	}
	read := answer.Found[0].Entity.Properties
	missing, err := c.lookup(ctx, nameKey("R", "gone"))
	return first(err, same("missing", len(missing.Missing), 1), same("count", len(read), len(put)),
		same("time", read["time"].TimestampValue, put["time"].TimestampValue),
		same("blob", read["blob"].BlobValue, "AP8="), same("double", read["double"].DoubleValue, 2.5),
		same("text", read["text"].StringValue, "é😀"),
		same("hidden", read["text"].ExcludeFromIndexes, true),
		same("key", read["key"].KeyValue.Path[0].Name, "b"),
		same("inner", read["inner"].EntityValue.Properties["x"].IntegerValue, int64(1)),
		same("list", read["list"].ArrayValue.Values[1].DoubleValue, 1.5),
		same("point", read["point"].GeoPointValue.Longitude, -9.25))
}

func (c *restClient) queries(ctx context.Context) error {
	var mutations []*rest.Mutation
	for _, name := range []string{"a", "b", "c"} {
		number := integer(int64(name[0]))
		mutations = append(mutations, upsert(nameKey("Q", name), map[string]rest.Value{"n": number}))
	}
	if err := c.commit(ctx, mutations...); err != nil {
		return err
	}
	bound, property := integer('a'), &rest.PropertyReference{Name: "n"}
	query := &rest.Query{
		Kind: []*rest.KindExpression{{Name: "Q"}}, Limit: 1,
		Order: []*rest.PropertyOrder{{Property: property, Direction: "DESCENDING"}},
		Filter: &rest.Filter{PropertyFilter: &rest.PropertyFilter{
			Property: property, Op: "GREATER_THAN", Value: &bound}},
	}
	run := func(request *rest.RunQueryRequest) (*rest.RunQueryResponse, error) {
		return c.projects.RunQuery(c.project, request).Context(ctx).Do()
	}
	one, err := run(&rest.RunQueryRequest{Query: query})
	if err != nil {
		return err
	}
	query.StartCursor = one.Batch.EndCursor
	two, err := run(&rest.RunQueryRequest{Query: query})
	if err != nil {
		return err
	}
	text := "SELECT * FROM Q WHERE n > @least AND n < @1 ORDER BY n"
	high := integer('c')
	gql, err := run(&rest.RunQueryRequest{GqlQuery: &rest.GqlQuery{
		QueryString: text, AllowLiterals: true,
		NamedBindings:      map[string]rest.GqlQueryParameter{"least": {Value: &bound}},
		PositionalBindings: []*rest.GqlQueryParameter{{Value: &high}},
	}})
	if err != nil {
		return err
	}
	_, bad := run(&rest.RunQueryRequest{GqlQuery: &rest.GqlQuery{QueryString: "SELEC"}})
	var refused *googleapi.Error
	errors.As(bad, &refused)
	name := func(answer *rest.RunQueryResponse) string {
		return answer.Batch.EntityResults[0].Entity.Key.Path[0].Name
	}
	return first(same("pages", []string{name(one), name(two)}, []string{"c", "b"}),
		same("more", one.Batch.MoreResults, "MORE_RESULTS_AFTER_LIMIT"), same("gql", name(gql), "b"),
		same("bad gql", refused != nil && refused.Code == http.StatusBadRequest, true))
}

func (c *restClient) aggregations(ctx context.Context) error {
	answer, err := c.projects.RunAggregationQuery(c.project, &rest.RunAggregationQueryRequest{
		AggregationQuery: &rest.AggregationQuery{
			NestedQuery: &rest.Query{Kind: []*rest.KindExpression{{Name: "Q"}}},
			Aggregations: []*rest.Aggregation{
				{Alias: "count", Count: &rest.Count{}},
				{Alias: "sum", Sum: &rest.Sum{Property: &rest.PropertyReference{Name: "n"}}},
			},
		},
	}).Context(ctx).Do()
	if err != nil {
		return err
	}
	row := answer.Batch.AggregationResults[0].AggregateProperties
	return same("row", []int64{row["count"].IntegerValue, row["sum"].IntegerValue},
		[]int64{3, 'a' + 'b' + 'c'})
}

// Two that read the same entity and write it: the second one is refused, and done again.
func (c *restClient) transactions(ctx context.Context) error {
	key := nameKey("Counter", "x")
	begin := func(previous string) (string, error) {
		answer, err := c.projects.BeginTransaction(c.project, &rest.BeginTransactionRequest{
			TransactionOptions: &rest.TransactionOptions{
				ReadWrite: &rest.ReadWrite{PreviousTransaction: previous}},
		}).Context(ctx).Do()
		if err != nil {
			return "", err
		}
		_, err = c.projects.Lookup(c.project, &rest.LookupRequest{Keys: []*rest.Key{key},
			ReadOptions: &rest.ReadOptions{Transaction: answer.Transaction}}).Context(ctx).Do()
		return answer.Transaction, err
	}
	write := func(transaction string, n int64) error {
		_, err := c.projects.Commit(c.project, &rest.CommitRequest{
			Mode: "TRANSACTIONAL", Transaction: transaction,
			Mutations: []*rest.Mutation{upsert(key, map[string]rest.Value{"n": integer(n)})},
		}).Context(ctx).Do()
		return err
	}
	transaction, err := begin("")
	if err != nil {
		return err
	}
	if err := c.commit(ctx, upsert(key, map[string]rest.Value{"n": integer(1)})); err != nil {
		return err
	}
	lost := write(transaction, 2)
	if lost == nil || !strings.Contains(lost.Error(), "contention") {
		return errors.Join(lost, errors.New("both wrote"))
	}
	_, err = c.projects.Rollback(c.project, &rest.RollbackRequest{Transaction: transaction}).Do()
	again, errAgain := begin(transaction)
	err = first(err, errAgain, write(again, 3))
	read, errRead := c.lookup(ctx, key)
	if err := first(err, errRead); err != nil {
		return err
	}
	return same("counter", read.Found[0].Entity.Properties["n"].IntegerValue, int64(3))
}

func (c *restClient) ids(ctx context.Context) error {
	incomplete := &rest.Key{Path: []*rest.PathElement{{Kind: "K"}}}
	answer, err := c.projects.AllocateIds(c.project,
		&rest.AllocateIdsRequest{Keys: []*rest.Key{incomplete, incomplete}}).Context(ctx).Do()
	if err != nil {
		return err
	}
	_, err = c.projects.ReserveIds(c.project, &rest.ReserveIdsRequest{Keys: answer.Keys}).Do()
	return first(err, same("apart", answer.Keys[0].Path[0].Id != answer.Keys[1].Path[0].Id, true))
}
