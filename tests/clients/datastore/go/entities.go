// What cloud.google.com/go/datastore does with entities.
package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"cloud.google.com/go/datastore"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

type grpcClient struct {
	*datastore.Client
	project string
}

type inner struct {
	Name string
	Long string `datastore:",noindex"`
}

type everything struct {
	Int      int64
	Bool     bool
	Double   float64
	Text     string
	Blob     []byte
	Time     time.Time
	Point    datastore.GeoPoint
	Ref      *datastore.Key
	Ints     []int64
	Inner    inner
	Inners   []inner
	Pointer  *string
	Nothing  *int64
	Hidden   string         `datastore:",noindex"`
	Renamed  int            `datastore:"other_name"`
	Absent   int            `datastore:",omitempty"`
	Dynamic  datastore.Key  `datastore:"-"`
	Identity *datastore.Key `datastore:"__key__"`
}

type item struct {
	N, M int
	Tags []string
	When time.Time
}

func codeOf(err error) string {
	return status.Code(err).String()
}

func (c *grpcClient) values(ctx context.Context) error {
	text := "pointed to"
	long := strings.Repeat("x", 5000)
	put := everything{
		Int: -1 << 63, Bool: true, Double: 2.5, Text: "é😀", Blob: []byte{0, 255},
		Time:  time.Date(2024, 2, 29, 1, 2, 3, 456789000, time.UTC),
		Point: datastore.GeoPoint{Lat: 52.5, Lng: -9.25}, Ref: datastore.NameKey("A", "b", nil),
		Ints: []int64{3, 1, 2}, Inner: inner{"n", long}, Inners: []inner{{"a", long}, {"b", ""}},
		Pointer: &text, Hidden: long, Renamed: 7,
	}
	key, err := c.Put(ctx, datastore.IncompleteKey("Everything", datastore.IDKey("P", 1, nil)), &put)
	if err != nil {
		return err
	}
	var got everything
	if err := c.Get(ctx, key, &got); err != nil {
		return err
	}
	if !got.Time.Equal(put.Time) || !got.Identity.Equal(key) || !got.Ref.Equal(put.Ref) {
		return fmt.Errorf("got %v", got)
	}
	got.Time, got.Identity, got.Ref = put.Time, nil, put.Ref
	indexed := everything{Text: strings.Repeat("x", 1501)}
	_, err = c.Put(ctx, key, &indexed)
	list := datastore.PropertyList{{Name: "L", Value: []any{int64(12), "string", true}}}
	_, errList := c.Put(ctx, datastore.NameKey("L", "l", nil), &list)
	var read datastore.PropertyList
	return first(
		same("values", got, put), same("too long", err != nil, true), errList,
		c.Get(ctx, datastore.NameKey("L", "l", nil), &read), same("list", read, list),
	)
}

func (c *grpcClient) mutations(ctx context.Context) error {
	keys, err := c.Mutate(ctx,
		datastore.NewInsert(datastore.IncompleteKey("T", nil), &item{N: 1}),
		datastore.NewUpsert(datastore.NameKey("T", "x", nil), &item{N: 2}),
	)
	if err != nil {
		return err
	}
	_, again := c.Mutate(ctx, datastore.NewInsert(keys[1], &item{N: 3}))
	_, err = c.Mutate(ctx, datastore.NewUpdate(keys[0], &item{N: 4}), datastore.NewDelete(keys[1]))
	_, gone := c.Mutate(ctx, datastore.NewUpdate(keys[1], &item{N: 5}))
	var read item
	return first(
		err, same("insert", codeOf(again), codes.AlreadyExists.String()),
		same("update", codeOf(gone), codes.NotFound.String()), c.Get(ctx, keys[0], &read),
		same("updated", read.N, 4), same("deleted", c.Get(ctx, keys[1], &read),
			datastore.ErrNoSuchEntity), c.Delete(ctx, keys[1]),
	)
}

func (c *grpcClient) manyKeys(ctx context.Context) error {
	keys, items := make([]*datastore.Key, 500), make([]item, 500)
	for n := range keys {
		keys[n], items[n].N = datastore.IncompleteKey("Many", nil), n
	}
	keys, err := c.PutMulti(ctx, keys, items)
	if err != nil {
		return err
	}
	read := make([]item, 501)
	err = c.GetMulti(ctx, append(keys, datastore.NameKey("Many", "gone", nil)), read)
	var several datastore.MultiError
	if !errors.As(err, &several) {
		return fmt.Errorf("GetMulti: %v", err)
	}
	for n := range 500 {
		if several[n] != nil || read[n].N != n {
			return fmt.Errorf("entity %d: %v, %v", n, read[n], several[n])
		}
	}
	return first(same("missing", several[500], datastore.ErrNoSuchEntity),
		c.DeleteMulti(ctx, append(keys, keys[:10]...)))
}

func (c *grpcClient) transforms(ctx context.Context) error {
	key := datastore.NameKey("Transformed", "x", nil)
	request := func() *datastore.PutRequest {
		return &datastore.PutRequest{Key: key, Entity: &item{N: 5, Tags: []string{"a", "b"}}}
	}
	one, two := request(), request()
	one.Transforms = []datastore.PropertyTransform{
		datastore.Increment("N", 3), datastore.Maximum("M", 10),
		datastore.AppendMissingElements("Tags", "b", "c"), datastore.SetToServerTime("When"),
	}
	if _, err := c.PutWithOptions(ctx, one); err != nil {
		return err
	}
	var read, second item
	if err := c.Get(ctx, key, &read); err != nil {
		return err
	}
	two.Transforms = []datastore.PropertyTransform{
		datastore.Minimum("N", 2), datastore.RemoveAllFromArray("Tags", "a"),
	}
	_, err := c.PutWithOptions(ctx, two)
	return first(
		err, c.Get(ctx, key, &second), same("numbers", []int{read.N, read.M, second.N}, []int{8, 10, 2}),
		same("tags", [][]string{read.Tags, second.Tags}, [][]string{{"a", "b", "c"}, {"b"}}),
		same("time", time.Since(read.When) < time.Minute, true),
	)
}

func (c *grpcClient) ids(ctx context.Context) error {
	incomplete := []*datastore.Key{
		datastore.IncompleteKey("K", nil), datastore.IncompleteKey("K", nil),
	}
	keys, err := c.AllocateIDs(ctx, incomplete)
	if err != nil {
		return err
	}
	return first(same("complete", keys[0].Incomplete() || keys[1].Incomplete(), false),
		same("apart", keys[0].ID != keys[1].ID, true), c.ReserveIDs(ctx, keys))
}

func (c *grpcClient) partitions(ctx context.Context) error {
	second, err := datastore.NewClientWithDatabase(ctx, c.project, "second")
	if err != nil {
		return err
	}
	defer second.Close()
	key, spaced := datastore.NameKey("Apart", "x", nil), datastore.NameKey("Apart", "x", nil)
	spaced.Namespace = "n"
	_, one := c.Put(ctx, key, &item{N: 1})
	_, two := second.Put(ctx, key, &item{N: 2})
	_, three := c.Put(ctx, spaced, &item{N: 3})
	var read [3]item
	var found []item
	_, four := c.GetAll(ctx, datastore.NewQuery("Apart").Namespace("n"), &found)
	return first(one, two, three, c.Get(ctx, key, &read[0]), second.Get(ctx, key, &read[1]),
		c.Get(ctx, spaced, &read[2]), same("read", read, [3]item{{N: 1}, {N: 2}, {N: 3}}),
		four, same("found", found, []item{{N: 3}}))
}
