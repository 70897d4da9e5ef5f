// What cloud.google.com/go/bigtable does with rows: writes, conditions, filters, ranges.
package main

import (
	"context"
	"encoding/binary"
	"errors"
	"sort"

	"cloud.google.com/go/bigtable"
	"google.golang.org/grpc/codes"
)

func set(family, column, value string) *bigtable.Mutation {
	mutation := bigtable.NewMutation()
	mutation.Set(family, column, 1000, []byte(value))
	return mutation
}

func columnsOf(row bigtable.Row) []string {
	columns := []string{}
	for _, cells := range row {
		for _, cell := range cells {
			columns = append(columns, cell.Column)
		}
	}
	sort.Strings(columns)
	return columns
}

func keysOf(ctx context.Context, table *bigtable.Table, rows bigtable.RowSet,
	options ...bigtable.ReadOption) ([]string, error) {
	keys := []string{}
	err := table.ReadRows(ctx, rows, func(row bigtable.Row) bool {
		keys = append(keys, row.Key())
		return true
	}, options...)
	return keys, err
}

func (p *program) writes(ctx context.Context) error {
	first := set("f", "q", "1")
	first.Set("f", "q", 2000, []byte("2"))
	first.Set("g", "other", bigtable.ServerTime, []byte("now"))
	if err := p.table.Apply(ctx, "w", first); err != nil {
		return err
	}
	row, err := p.table.ReadRow(ctx, "w")
	if err != nil {
		return err
	}
	remove := bigtable.NewMutation()
	remove.DeleteTimestampRange("f", "q", 0, 2000)
	remove.DeleteCellsInFamily("g")
	if err := p.table.Apply(ctx, "w", remove); err != nil {
		return err
	}
	left, err := p.table.ReadRow(ctx, "w")
	whole := bigtable.NewMutation()
	whole.DeleteRow()
	gone := p.table.Apply(ctx, "w", whole)
	empty, errEmpty := p.table.ReadRow(ctx, "w")
	return errors.Join(err, gone, errEmpty,
		same("columns", columnsOf(row), []string{"f:q", "f:q", "g:other"}),
		same("newest first", string(row["f"][0].Value), "2"),
		same("left", columnsOf(left), []string{"f:q"}), same("empty", len(empty), 0),
		wantCode("no such family", p.table.Apply(ctx, "w", set("none", "q", "v")), codes.NotFound),
		wantCode("no such table", p.data.Open("none").Apply(ctx, "w", set("f", "q", "v")),
			codes.NotFound))
}

func (p *program) atomics(ctx context.Context) error {
	yes, no := set("f", "state", "paid"), set("f", "state", "new")
	condition := bigtable.NewCondMutation(bigtable.ValueFilter("new"), yes, no)
	for _, want := range []bool{false, true} {
		var matched bool
		err := p.table.Apply(ctx, "order", condition, bigtable.GetCondMutationResult(&matched))
		if err != nil {
			return err
		}
		if err := same("matched", matched, want); err != nil {
			return err
		}
	}
	change := bigtable.NewReadModifyWrite()
	change.Increment("g", "count", 5)
	change.AppendValue("g", "log", []byte("x"))
	for range 2 {
		if _, err := p.table.ApplyReadModifyWrite(ctx, "order", change); err != nil {
			return err
		}
	}
	row, err := p.table.ReadRow(ctx, "order", bigtable.RowFilter(bigtable.LatestNFilter(1)))
	if err != nil {
		return err
	}
	return errors.Join(same("state", string(row["f"][0].Value), "paid"),
		same("count", binary.BigEndian.Uint64(row["g"][0].Value), uint64(10)),
		same("log", string(row["g"][1].Value), "xx"))
}

func (p *program) aggregates(ctx context.Context) error {
	err := p.tables.CreateColumnFamilyWithConfig(ctx, "t", "sum", bigtable.Family{
		ValueType: bigtable.AggregateType{
			Input: bigtable.Int64Type{}, Aggregator: bigtable.SumAggregator{},
		},
	})
	if err != nil {
		return err
	}
	for _, number := range []int64{20, 22} {
		add := bigtable.NewMutation()
		add.AddIntToCell("sum", "n", 1000, number)
		if err := p.table.Apply(ctx, "added", add); err != nil {
			return err
		}
	}
	row, err := p.table.ReadRow(ctx, "added")
	if err != nil {
		return err
	}
	return same("sum", binary.BigEndian.Uint64(row["sum"][0].Value), uint64(42))
}

func (p *program) filters(ctx context.Context) error {
	one := set("f", "a", "apple")
	one.Set("f", "b", 2000, []byte("berry"))
	one.Set("g", "c", 3000, []byte("cherry"))
	if err := p.table.Apply(ctx, "fruit", one); err != nil {
		return err
	}
	for _, each := range []struct {
		name   string
		filter bigtable.Filter
		want   []string
	}{
		{"family", bigtable.FamilyFilter("g"), []string{"g:c"}},
		{"column", bigtable.ColumnFilter("[ab]"), []string{"f:a", "f:b"}},
		{"value", bigtable.ValueFilter(".*rry"), []string{"f:b", "g:c"}},
		{"column range", bigtable.ColumnRangeFilter("f", "b", ""), []string{"f:b"}},
		{"value range", bigtable.ValueRangeFilter([]byte("b"), []byte("c")), []string{"f:b"}},
		{"time", bigtable.TimestampRangeFilterMicros(2000, 3000), []string{"f:b"}},
		{"offset", bigtable.CellsPerRowOffsetFilter(2), []string{"g:c"}},
		{"limit", bigtable.CellsPerRowLimitFilter(1), []string{"f:a"}},
		{"chain", bigtable.ChainFilters(bigtable.FamilyFilter("f"), bigtable.ColumnFilter("b"),
			bigtable.StripValueFilter()), []string{"f:b"}},
		{"interleaved", bigtable.InterleaveFilters(bigtable.ColumnFilter("a"),
			bigtable.ColumnFilter("[ac]")), []string{"f:a", "f:a", "g:c"}},
		{"condition", bigtable.ConditionFilter(bigtable.ValueFilter("apple"),
			bigtable.ColumnFilter("c"), bigtable.PassAllFilter()), []string{"g:c"}},
		{"nothing", bigtable.BlockAllFilter(), []string{}},
	} {
		row, err := p.table.ReadRow(ctx, "fruit", bigtable.RowFilter(each.filter))
		if err = errors.Join(err, same(each.name, columnsOf(row), each.want)); err != nil {
			return err
		}
	}
	labelled, err := p.table.ReadRow(ctx, "fruit", bigtable.RowFilter(bigtable.ChainFilters(
		bigtable.ColumnFilter("a"), bigtable.LabelFilter("sweet"))))
	if err != nil {
		return err
	}
	_, unknown := p.table.ReadRow(ctx, "fruit",
		bigtable.RowFilter(bigtable.FamilyFilter("none")))
	return errors.Join(same("label", labelled["f"][0].Labels, []string{"sweet"}),
		wantCode("a family that is not there", unknown, codes.NotFound))
}

func (p *program) ranges(ctx context.Context) error {
	for _, key := range []string{"r1", "r2", "r3", "r4", "r5"} {
		if err := p.table.Apply(ctx, key, set("f", "q", "v")); err != nil {
			return err
		}
	}
	for _, each := range []struct {
		name    string
		rows    bigtable.RowSet
		options []bigtable.ReadOption
		want    []string
	}{
		{"prefix", bigtable.PrefixRange("r"), nil, []string{"r1", "r2", "r3", "r4", "r5"}},
		{"half open", bigtable.NewRange("r2", "r4"), nil, []string{"r2", "r3"}},
		{"open", bigtable.NewOpenRange("r2", "r4"), nil, []string{"r3"}},
		{"closed", bigtable.NewClosedRange("r2", "r4"), nil, []string{"r2", "r3", "r4"}},
		{"list", bigtable.RowList{"r4", "r1", "none"}, nil, []string{"r1", "r4"}},
		{"ranges", bigtable.RowRangeList{bigtable.NewRange("r4", "r5"), bigtable.NewRange("r1", "r2")},
			nil, []string{"r1", "r4"}},
		{"limit", bigtable.PrefixRange("r"), []bigtable.ReadOption{bigtable.LimitRows(2)},
			[]string{"r1", "r2"}},
		{"reversed", bigtable.PrefixRange("r"),
			[]bigtable.ReadOption{bigtable.ReverseScan(), bigtable.LimitRows(3)},
			[]string{"r5", "r4", "r3"}},
		{"key", bigtable.PrefixRange("r"),
			[]bigtable.ReadOption{bigtable.RowFilter(bigtable.RowKeyFilter("r[24]"))},
			[]string{"r2", "r4"}},
	} {
		keys, err := keysOf(ctx, p.table, each.rows, each.options...)
		if err = errors.Join(err, same(each.name, keys, each.want)); err != nil {
			return err
		}
	}
	return nil
}
