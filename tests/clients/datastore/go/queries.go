// What cloud.google.com/go/datastore does with queries.
package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"cloud.google.com/go/datastore"
	"google.golang.org/api/iterator"
)

const itemCount = 700 // more than one batch

var root = datastore.NameKey("Root", "r", nil)

func (c *grpcClient) putItems(ctx context.Context) error {
	keys, items := make([]*datastore.Key, itemCount), make([]item, itemCount)
	for n := range keys {
		keys[n] = datastore.IDKey("Item", int64(n+1), root)
		items[n] = item{N: n, M: n % 7, Tags: []string{"all", fmt.Sprint("t", n%2)},
			When: time.Unix(int64(n), 0)}
	}
	_, err := c.PutMulti(ctx, keys[:400], items[:400])
	_, more := c.PutMulti(ctx, keys[400:], items[400:])
	return first(err, more)
}

func (c *grpcClient) numbers(ctx context.Context, query *datastore.Query) ([]int, error) {
	var found []item
	var numbers []int
	_, err := c.GetAll(ctx, query, &found)
	for _, each := range found {
		numbers = append(numbers, each.N)
	}
	return numbers, err
}

func upTo(from, to int, fits func(int) bool) (numbers []int) {
	for n := from; n < to; n++ {
		if fits(n) {
			numbers = append(numbers, n)
		}
	}
	return numbers
}

func (c *grpcClient) queries(ctx context.Context) error {
	if err := c.putItems(ctx); err != nil {
		return err
	}
	all := func(int) bool { return true }
	query := datastore.NewQuery("Item")
	field := func(name, operator string, value any) datastore.PropertyFilter {
		return datastore.PropertyFilter{FieldName: name, Operator: operator, Value: value}
	}
	either := datastore.OrFilter{Filters: []datastore.EntityFilter{
		field("N", "=", 5),
		datastore.AndFilter{Filters: []datastore.EntityFilter{
			field("M", "=", 3), field("Tags", "=", "t1"),
		}},
	}}
	for name, each := range map[string]struct {
		query *datastore.Query
		want  []int
	}{
		"all":      {query, upTo(0, itemCount, all)},
		"range":    {query.FilterField("N", ">", 5).FilterField("N", "<=", 8), []int{6, 7, 8}},
		"reversed": {query.Order("-N").Limit(2), []int{699, 698}},
		"joined": {query.FilterField("M", "=", 3).FilterField("Tags", "=", "t0"),
			upTo(0, itemCount, func(n int) bool { return n%7 == 3 && n%2 == 0 })},
		"ancestor":  {query.Ancestor(root).FilterField("N", "=", 7), []int{7}},
		"kindless":  {datastore.NewQuery("").Ancestor(root).Limit(3), []int{0, 1, 2}},
		"in":        {query.FilterField("N", "in", []any{9, 4}), []int{4, 9}},
		"not in":    {query.FilterField("N", "not-in", []any{0, 1}).Limit(2), []int{2, 3}},
		"different": {query.FilterField("N", "!=", 0).Limit(2), []int{1, 2}},
		"or": {query.FilterEntity(either),
			upTo(0, itemCount, func(n int) bool { return n == 5 || n%7 == 3 && n%2 == 1 })},
		"times":    {query.FilterField("When", ">", time.Unix(697, 0)), []int{698, 699}},
		"limits":   {query.Order("N").Offset(600).Limit(3), []int{600, 601, 602}},
		"beyond":   {query.Offset(itemCount + 5), nil},
		"eventual": {query.FilterField("N", "=", 3).EventualConsistency(), []int{3}},
		"key": {query.FilterField("__key__", ">", datastore.IDKey("Item", 698, root)),
			[]int{698, 699}},
	} {
		got, err := c.numbers(ctx, each.query)
		if err := first(err, same(name, got, each.want)); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		count, err := c.Count(ctx, each.query)
		if err := first(err, same(name, count, len(each.want))); err != nil {
			return fmt.Errorf("%s: count: %w", name, err)
		}
	}
	_, err := c.GetAll(ctx, datastore.NewQuery("").FilterField("N", "=", 4), &[]item{})
	return same("kindless", strings.Contains(fmt.Sprint(err), "kind is required"), true)
}

func (c *grpcClient) projections(ctx context.Context) error {
	var parts []struct{ M int }
	_, err := c.GetAll(ctx, datastore.NewQuery("Item").Project("M").DistinctOn("M").Order("M"), &parts)
	var numbers []int
	for _, each := range parts {
		numbers = append(numbers, each.M)
	}
	var times []struct{ When time.Time }
	keys, errTimes := c.GetAll(ctx, datastore.NewQuery("Item").Project("When").Limit(3), &times)
	only, errKeys := c.GetAll(ctx, datastore.NewQuery("Item").KeysOnly().Limit(3), nil)
	if err := first(err, errTimes, errKeys); err != nil {
		return err
	}
	return first(same("distinct", numbers, []int{0, 1, 2, 3, 4, 5, 6}),
		same("times", times[2].When.Unix(), int64(2)),
		same("keys", slices.EqualFunc(keys, only, (*datastore.Key).Equal), true))
}

// In pages of 128, each from the cursor of the one before, and once more to a cursor.
func (c *grpcClient) cursors(ctx context.Context) error {
	query := datastore.NewQuery("Item").Order("-N")
	var found []int
	var start, last datastore.Cursor
	for page := query.Limit(128); ; page = query.Limit(128).Start(start) {
		count := 0
		each := c.Run(ctx, page)
		for ; ; count++ {
			var read item
			if _, err := each.Next(&read); errors.Is(err, iterator.Done) {
				break
			} else if err != nil {
				return err
			}
			found = append(found, read.N)
		}
		var err error
		last = start
		if start, err = each.Cursor(); err != nil {
			return err
		}
		if count < 128 {
			break
		}
	}
	slices.Reverse(found)
	again, err := datastore.DecodeCursor(last.String())
	if err != nil {
		return err
	}
	before, err := c.numbers(ctx, query.End(again).Offset(600))
	return first(err, same("all", found, upTo(0, itemCount, func(int) bool { return true })),
		same("before the last page", len(before), itemCount/128*128-600))
}

func (c *grpcClient) aggregations(ctx context.Context) error {
	query := datastore.NewQuery("Item").FilterField("N", "<", 10)
	result, err := c.RunAggregationQuery(ctx,
		query.NewAggregationQuery().WithCount("count").WithSum("N", "sum").WithAvg("N", "avg"))
	if err != nil {
		return err
	}
	words := fmt.Sprint(result["count"], result["sum"], result["avg"])
	for _, word := range []string{"integer_value:10", "integer_value:45", "double_value:4.5"} {
		if !strings.Contains(words, word) {
			return fmt.Errorf("%s is not in %s", word, words)
		}
	}
	return nil
}

func (c *grpcClient) missingIndex(ctx context.Context) error {
	_, err := c.numbers(ctx, datastore.NewQuery("Item").FilterField("M", "=", 3).Order("-N"))
	return first(same("code", codeOf(err), "FailedPrecondition"), same("words", strings.Contains(
		fmt.Sprint(err), "recommended index is:\n- kind: Item\n  properties:\n  - name: M\n"), true))
}

func (c *grpcClient) explained(ctx context.Context) error {
	var found []item
	result, err := c.GetAllWithOptions(ctx, datastore.NewQuery("Item").FilterField("N", ">", 690),
		&found, datastore.ExplainOptions{Analyze: true})
	if err != nil {
		return err
	}
	metrics := result.ExplainMetrics
	return first(same("results", metrics.ExecutionStats.ResultsReturned, int64(9)),
		same("indexes", len(metrics.PlanSummary.IndexesUsed), 1))
}
