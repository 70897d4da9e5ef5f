// SQL through cloud.google.com/go/bigtable: parameters of every type that it has, and a table.
package main

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"cloud.google.com/go/bigtable"
	"cloud.google.com/go/civil"
	"google.golang.org/grpc/codes"
)

// query runs SQL and gives each row to take.
func (p *program) query(ctx context.Context, sql string, types map[string]bigtable.SQLType,
	values map[string]any, take func(bigtable.ResultRow) error) error {
	prepared, err := p.data.PrepareStatement(ctx, sql, types)
	if err != nil {
		return err
	}
	bound, err := prepared.Bind(values)
	if err != nil {
		return err
	}
	var taken error
	err = bound.Execute(ctx, func(row bigtable.ResultRow) bool {
		taken = take(row)
		return taken == nil
	})
	return errors.Join(err, taken)
}

type parameter struct {
	of    bigtable.SQLType
	value any
}

// parameters asks for each value back, alone and from an array, and for a NULL of its type.
func (p *program) parameters(ctx context.Context) error {
	moment := time.Date(2024, 2, 29, 1, 2, 3, 456789000, time.UTC)
	for _, each := range []parameter{
		{bigtable.BytesSQLType{}, []byte{0, 255}},
		{bigtable.StringSQLType{}, "é😀"},
		{bigtable.Int64SQLType{}, int64(-1 << 63)},
		{bigtable.Float32SQLType{}, float32(1.25)},
		{bigtable.Float64SQLType{}, -2.5e300},
		{bigtable.BoolSQLType{}, true},
		{bigtable.TimestampSQLType{}, moment},
		{bigtable.DateSQLType{}, civil.DateOf(moment)},
	} {
		if err := p.backAgain(ctx, each); err != nil {
			return fmt.Errorf("%T: %w", each.of, err)
		}
	}
	return nil
}

func (p *program) backAgain(ctx context.Context, each parameter) error {
	array := reflect.MakeSlice(reflect.SliceOf(reflect.TypeOf(each.value)), 0, 2)
	array = reflect.Append(array, reflect.ValueOf(each.value), reflect.ValueOf(each.value))
	types := map[string]bigtable.SQLType{
		"one": each.of, "none": each.of, "many": bigtable.ArraySQLType{ElemType: each.of},
	}
	values := map[string]any{"one": each.value, "none": nil, "many": array.Interface()}
	rows := 0
	err := p.query(ctx, "SELECT @one AS one, @none IS NULL AS none, @many AS many", types, values,
		func(row bigtable.ResultRow) error {
			rows++
			one, many := reflect.New(reflect.TypeOf(each.value)), reflect.New(array.Type())
			var none bool
			err := errors.Join(row.GetByName("one", one.Interface()),
				row.GetByName("none", &none), row.GetByName("many", many.Interface()))
			return errors.Join(err, same("value", one.Elem().Interface(), each.value),
				same("null", none, true), same("array", many.Elem().Interface(), array.Interface()))
		})
	return errors.Join(err, same("rows", rows, 1))
}

func (p *program) sqlOfTable(ctx context.Context) error {
	if err := p.createTable(ctx, "sales", "f"); err != nil {
		return err
	}
	if err := fill(ctx, p.data.Open("sales"), 1000, 3, 200); err != nil {
		return err
	}
	rows, size := 0, 0
	err := p.query(ctx, "SELECT _key, f FROM sales WHERE _key >= @start", // of many messages
		map[string]bigtable.SQLType{"start": bigtable.BytesSQLType{}},
		map[string]any{"start": []byte("r000100")},
		func(row bigtable.ResultRow) error {
			rows++
			var columns map[string][]byte
			err := row.GetByName("f", &columns)
			for _, value := range columns {
				size += len(value)
			}
			return err
		})
	if err != nil {
		return err
	}
	var number int64
	err = p.query(ctx, "SELECT COUNT(*) AS n FROM sales WHERE f['q0001'] IS NOT NULL", nil, nil,
		func(row bigtable.ResultRow) error { return row.GetByName("n", &number) })
	_, wrong := p.data.PrepareStatement(ctx, "SELECT nothing FROM sales", nil)
	return errors.Join(err, same("rows", rows, 900), same("bytes", size, 900*3*200),
		same("count", number, int64(1000)),
		wantCode("no such column", wrong, codes.InvalidArgument),
		p.tables.DeleteTable(ctx, "sales"))
}
