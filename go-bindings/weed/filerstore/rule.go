package filerstore

import (
	"context"
	"fmt"

	upstream "github.com/seaweedfs/seaweedfs/weed/filer"
	"github.com/seaweedfs/seaweedfs/weed/glog"
	"github.com/seaweedfs/seaweedfs/weed/util"
)

// checkRule reads the filer's rules for paths (fs.configure of weed shell), and refuses those under
// which records would disappear, or could not be deleted.
func (o *Objects) checkRule(ctx context.Context) error {
	path := util.NewFullPath(upstream.DirectoryEtcSeaweedFS, upstream.FilerConfName)
	entry, where, err := o.find(ctx, path)
	if err != nil {
		return err
	}
	rules := upstream.NewFilerConf()
	if entry != nil {
		text := make([]byte, size(entry))
		if err := o.read(ctx, entry, where, 0, text); err != nil {
			return fmt.Errorf("read %s: %w", path, err)
		}
		if err := rules.LoadFromBytes(text); err != nil {
			return fmt.Errorf("read %s: %w", path, err)
		}
	}
	rule := rules.MatchStorageRule(o.options.Dir + "/journal/")
	switch {
	case rule.Ttl != "":
		return fmt.Errorf("the filer's rule for %s deletes everything after %s; remove its -ttl", rule.LocationPrefix, rule.Ttl)
	case rule.GetWorm():
		return fmt.Errorf("the filer's rule for %s forbids to delete (-worm), which Kelp must", rule.LocationPrefix)
	case rule.ReadOnly:
		glog.Warningf("kelp: the filer's rule for %s is read-only: nothing can be produced", rule.LocationPrefix)
	}
	replication := rule.Replication
	if replication == "" {
		replication = "the cluster's default"
	}
	glog.Infof("kelp: records are kept below %s; fsync: %t, replication: %s", o.options.Dir, rule.GetFsync(), replication)
	return nil
}
