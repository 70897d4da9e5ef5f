// Much data through cloud.google.com/go/bigtable: its reader takes messages of any number of rows,
// but ends a read at a message that ends within one.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"cloud.google.com/go/bigtable"
)

// fill writes rows of so many cells in each so many bytes, a few megabytes a request.
func fill(ctx context.Context, table *bigtable.Table, rows, cells, size int) error {
	var keys []string
	var mutations []*bigtable.Mutation
	value := bytes.Repeat([]byte("v"), size)
	for row := range rows {
		mutation := bigtable.NewMutation()
		for cell := range cells {
			mutation.Set("f", fmt.Sprintf("q%04d", cell), 1000, value)
		}
		keys, mutations = append(keys, fmt.Sprintf("r%06d", row)), append(mutations, mutation)
		if len(keys)*cells*(size+40) < 2*megabyte && row+1 < rows {
			continue
		}
		errs, err := table.ApplyBulk(ctx, keys, mutations)
		if err = errors.Join(append(errs, err)...); err != nil {
			return err
		}
		keys, mutations = nil, nil
	}
	return nil
}

// count reads a whole table and says what it saw: rows, cells, bytes of values.
func count(ctx context.Context, table *bigtable.Table,
	options ...bigtable.ReadOption) ([3]int, error) {
	var seen [3]int
	last := ""
	var order error
	err := table.ReadRows(ctx, bigtable.InfiniteRange(""), func(row bigtable.Row) bool {
		if row.Key() <= last {
			order = fmt.Errorf("%s after %s", row.Key(), last)
		}
		last = row.Key()
		seen[0]++
		for _, cell := range row["f"] {
			seen[1]++
			seen[2] += len(cell.Value)
		}
		return true
	}, options...)
	return seen, errors.Join(err, order)
}

func (p *program) scans(ctx context.Context) error {
	for number, shape := range [][3]int{
		{1000, 10, 100}, {1000, 10, 1000}, {200, 50, 1000}, {66, 100, 1000}, {3, 20000, 10},
	} {
		rows, cells, size := shape[0], shape[1], shape[2]
		name := fmt.Sprintf("scan%d", number)
		if err := p.createTable(ctx, name, "f"); err != nil {
			return err
		}
		table := p.data.Open(name)
		if err := fill(ctx, table, rows, cells, size); err != nil {
			return err
		}
		seen, err := count(ctx, table)
		what := fmt.Sprintf("%d rows of %d x %d bytes", rows, cells, size)
		if err == nil {
			err = same(what, seen, [3]int{rows, rows * cells, rows * cells * size})
		}
		if err == nil {
			seen, err = count(ctx, table, bigtable.RowFilter(bigtable.CellsPerRowLimitFilter(1)))
		}
		err = errors.Join(err, same(what+", a cell each", seen, [3]int{rows, rows, rows * size}))
		if err = errors.Join(err, p.tables.DeleteTable(ctx, name)); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
	}
	return nil
}

func (p *program) bulk(ctx context.Context) error {
	if err := p.createTable(ctx, "bulk", "f"); err != nil {
		return err
	}
	table := p.data.Open("bulk")
	const rows = 5000
	if err := fill(ctx, table, rows, 4, 50); err != nil {
		return err
	}
	seen, err := count(ctx, table)
	keys := []string{"good", "bad", "good too"}
	errs, errBulk := table.ApplyBulk(ctx, keys, []*bigtable.Mutation{
		set("f", "q", "v"), set("none", "q", "v"), set("f", "q", "v"),
	})
	return errors.Join(err, errBulk, p.refused(errs), p.tables.DeleteTable(ctx, "bulk"),
		same("rows, cells, bytes", seen, [3]int{rows, rows * 4, rows * 4 * 50}))
}

// refused: of three mutations the second failed.
func (p *program) refused(errs []error) error {
	if len(errs) != 3 || errs[0] != nil || errs[1] == nil || errs[2] != nil {
		return fmt.Errorf("errors of a bulk write: %v", errs)
	}
	if !strings.Contains(errs[1].Error(), "'bad'") {
		return fmt.Errorf("does not name the row: %w", errs[1])
	}
	return nil
}

func (p *program) largeCells(ctx context.Context) error {
	large, err := p.openLarge(ctx)
	if err != nil {
		return err
	}
	defer large.Close()
	for _, each := range []struct {
		client    *bigtable.Client
		megabytes int
	}{{p.data, 3}, {large, 5}, {large, 60}} {
		table, key := each.client.Open("t"), fmt.Sprintf("large-%d", each.megabytes)
		value := bytes.Repeat([]byte("0123456789abcdef"), each.megabytes<<16)
		write, remove := bigtable.NewMutation(), bigtable.NewMutation()
		write.Set("f", "q", 1000, value)
		write.Set("g", "after", 1000, []byte("small"))
		remove.DeleteRow()
		if err := table.Apply(ctx, key, write); err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		row, err := table.ReadRow(ctx, key)
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		err = errors.Join(
			same(key, len(row["f"]) == 1 && bytes.Equal(row["f"][0].Value, value), true),
			same("after it", len(row["g"]), 1), table.Apply(ctx, key, remove))
		if err != nil {
			return err
		}
	}
	return nil
}
