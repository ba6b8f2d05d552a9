package filerstore

import (
	"fmt"
	"sync"
	"testing"
	"time"
)

func BenchmarkPutNew(b *testing.B) {
	for _, size := range []int{1 << 10, 6 << 10, 16 << 10, 1 << 20} {
		for _, writers := range []int{1, 4} {
			b.Run(fmt.Sprintf("%dKiB/%dwriters", size>>10, writers), func(b *testing.B) {
				o := open(b)
				parts := [][]byte{random(size)}
				directory := fmt.Sprintf("journal/1/%d", time.Now().UnixNano())
				put(b, o, directory+"/first", parts[0])
				b.SetBytes(int64(size))
				b.ResetTimer()
				var group sync.WaitGroup
				for writer := range writers {
					group.Go(func() {
						for seq := writer; seq < b.N; seq += writers {
							if _, err := o.PutNew(b.Context(), fmt.Sprintf("%s/%020d", directory, seq), parts); err != nil {
								b.Error(err)
								return
							}
						}
					})
				}
				group.Wait()
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "objects/s")
			})
		}
	}
}
