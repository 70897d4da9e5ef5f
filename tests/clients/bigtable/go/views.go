package main

// Continuous materialized views, by the library's own methods.

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"cloud.google.com/go/bigtable"
	"google.golang.org/grpc/codes"
)

const viewed = "viewed"

// cellsOf notes the cells of a row in words.
func cellsOf(row bigtable.Row) []string {
	var cells []string
	for _, family := range []string{"default", "result"} {
		for _, item := range row[family] {
			cells = append(cells, fmt.Sprintf("%s@%d=%x", item.Column, item.Timestamp, item.Value))
		}
	}
	return cells
}

// becomes waits for a row of a view to be as it must come to be.
func becomes(ctx context.Context, view bigtable.TableAPI, key string, want []string) error {
	for {
		row, err := view.ReadRow(ctx, key)
		if err != nil {
			return err
		}
		if same("", cellsOf(row), want) == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return same(key, cellsOf(row), want)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (p *program) setAmount(ctx context.Context, key string, amount uint64) error {
	change := bigtable.NewMutation()
	change.Set("f", "amount", 1000, binary.BigEndian.AppendUint64(nil, amount))
	return p.data.Open(viewed).Apply(ctx, key, change)
}

func (p *program) createTotals(ctx context.Context) error {
	return p.instances.CreateMaterializedView(ctx, instance, &bigtable.MaterializedViewInfo{
		MaterializedViewID: "totals",
		Query: "SELECT _key, COUNT(f['amount']) AS `result.count`, " +
			"SUM(TO_INT64(f['amount'])) AS total FROM viewed GROUP BY _key",
	})
}

func (p *program) totalsBySQL(ctx context.Context) ([]int64, error) {
	var totals []int64
	err := p.query(ctx, "SELECT total FROM totals", nil, nil, func(row bigtable.ResultRow) error {
		var total int64
		err := row.GetByName("total", &total)
		totals = append(totals, total)
		return err
	})
	return totals, err
}

// dropTotals deletes the view, and what it read, in that order: no other goes.
func (p *program) dropTotals(ctx context.Context) error {
	refused := p.tables.DeleteTable(ctx, viewed)
	return errors.Join(
		wantCode("a table that is read", refused, codes.FailedPrecondition),
		p.instances.DeleteMaterializedView(ctx, instance, "totals"),
		p.tables.DeleteTable(ctx, viewed))
}

func (p *program) materializedViews(ctx context.Context) error {
	if err := p.createTable(ctx, viewed, "f"); err != nil {
		return err
	}
	if err := errors.Join(p.setAmount(ctx, "r1", 5), p.createTotals(ctx)); err != nil {
		return err
	}
	view := p.data.OpenMaterializedView("totals")
	row, err := view.ReadRow(ctx, "r1")
	listed, listing := p.instances.MaterializedViews(ctx, instance)
	samples, sampling := view.SampleRowKeys(ctx)
	err = errors.Join(err, listing, sampling, same("listed", len(listed), 1),
		same("samples", len(samples), 0), // the library leaves the end out
		same("r1", cellsOf(row), []string{"default:@0=", "default:total@0=0000000000000005",
			"result:count@0=0000000000000001"}),
		p.setAmount(ctx, "r1", 7), p.setAmount(ctx, "r2", 1),
		becomes(ctx, view, "r1", []string{"default:@0=", "default:total@0=0000000000000007",
			"result:count@0=0000000000000001"}),
		becomes(ctx, view, "r2", []string{"default:@0=", "default:total@0=0000000000000001",
			"result:count@0=0000000000000001"}))
	totals, asking := p.totalsBySQL(ctx)
	return errors.Join(err, asking, same("totals", totals, []int64{7, 1}), p.dropTotals(ctx))
}
