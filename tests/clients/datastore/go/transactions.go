// What cloud.google.com/go/datastore does with transactions, and with the past.
package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"cloud.google.com/go/datastore"
)

func (c *grpcClient) increment(ctx context.Context, key *datastore.Key,
	also func(turn int) error) error {
	turn := 0
	_, err := c.RunInTransaction(ctx, func(tx *datastore.Transaction) error {
		turn++
		var read item
		if err := tx.Get(key, &read); err != nil && !errors.Is(err, datastore.ErrNoSuchEntity) {
			return err
		}
		read.N++
		if _, err := tx.Put(key, &read); err != nil {
			return err
		}
		return also(turn)
	}, datastore.MaxAttempts(50))
	return err
}

// Somebody else writes in between, twice.
func (c *grpcClient) retries(ctx context.Context) error {
	key := datastore.NameKey("Counter", "retried", nil)
	other, err := datastore.NewClient(ctx, c.project)
	if err != nil {
		return err
	}
	defer other.Close()
	turns := 0
	err = c.increment(ctx, key, func(turn int) error {
		turns = turn
		if turn > 2 {
			return nil
		}
		_, err := other.Put(ctx, key, &item{N: 10 * turn})
		return err
	})
	var read item
	bang := errors.New("bang")
	_, failed := c.RunInTransaction(ctx, func(tx *datastore.Transaction) error {
		_, err := tx.Put(key, &item{N: 500})
		return first(err, bang)
	})
	return first(err, same("turns", turns, 3), same("error", failed, bang), c.Get(ctx, key, &read),
		same("counter", read.N, 21))
}

func (c *grpcClient) contention(ctx context.Context) error {
	key := datastore.NameKey("Counter", "shared", nil)
	const writers, times = 4, 10
	failures := make([]error, writers)
	var group sync.WaitGroup
	for at := range failures {
		group.Go(func() {
			for range times {
				failures[at] = first(failures[at],
					c.increment(ctx, key, func(int) error { return nil }))
			}
		})
	}
	group.Wait()
	var read item
	return first(first(failures...), c.Get(ctx, key, &read), same("counter", read.N, writers*times))
}

func (c *grpcClient) readOnly(ctx context.Context) error {
	key := datastore.NameKey("Counter", "shared", nil)
	var read item
	var count int
	_, err := c.RunInTransaction(ctx, func(tx *datastore.Transaction) error {
		var err error
		count, err = c.Count(ctx, datastore.NewQuery("Counter").Transaction(tx))
		return first(tx.Get(key, &read), err)
	}, datastore.ReadOnly, datastore.BeginLater)
	_, written := c.RunInTransaction(ctx, func(tx *datastore.Transaction) error {
		_, err := tx.Put(key, &item{N: 1})
		return err
	}, datastore.ReadOnly)
	later, errLater := c.NewTransaction(ctx, datastore.BeginLater)
	if err := first(err, errLater); err != nil {
		return err
	}
	pending, errPut := later.Put(datastore.IncompleteKey("Counter", nil), &item{N: 77})
	commit, errCommit := later.Commit()
	if err := first(errPut, errCommit); err != nil {
		return err
	}
	begun, errBegin := c.NewTransaction(ctx)
	if errBegin != nil {
		return errBegin
	}
	return first(same("read", []int{read.N, count}, []int{40, 2}),
		same("write", codeOf(written), "InvalidArgument"),
		c.Get(ctx, commit.Key(pending), &read), same("pending", read.N, 77), begun.Rollback())
}

func (c *grpcClient) past(ctx context.Context) error {
	key := datastore.NameKey("Past", "x", nil)
	_, err := c.Put(ctx, key, &item{N: 1})
	before := time.Now().Truncate(time.Microsecond) // what a read_time may have
	_, again := c.Put(ctx, key, &item{N: 2})
	var then, now item
	_, reading := c.RunInTransaction(ctx, func(tx *datastore.Transaction) error {
		return tx.Get(key, &then)
	}, datastore.ReadOnly, datastore.WithReadTime(before))
	return first(err, again, reading, c.Get(ctx, key, &now),
		same("then and now", []int{then.N, now.N}, []int{1, 2}))
}
