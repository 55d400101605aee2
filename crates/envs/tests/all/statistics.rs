//! Episode statistics: return, length and seconds of the episode that a row ends.

use crate::common::count::{Count, Told, count};
use crate::common::{MODES, config, source_of};
use envcore::{AutoresetMode, Begin, ColumnIn, Serial, Slots, ToRow, VecConfig, VecEnv, Want};

/// Return, length and seconds where there are statistics.
fn statistics(envs: &dyn VecEnv, batch: &envcore::Batch) -> Vec<Option<(f64, i64)>> {
    let at = envs.spec().info.leaves().iter().position(|leaf| leaf.name == "episode.r").unwrap();
    let column = |k: usize| batch.infos.columns[at + k].as_fixed().unwrap();
    let row = |row: usize| {
        let masks: Vec<bool> = (0..3).map(|k| batch.infos.masks[at + k].as_slice::<bool>()[row]).collect();
        let (r, l, t) =
            (column(0).row::<f64>(row)[0], column(1).row::<i64>(row)[0], column(2).row::<f64>(row)[0]);
        assert!(masks.iter().all(|mask| *mask == masks[0]), "r, l and t come together");
        assert!(masks[0] || (r, l, t) == (0.0, 0, 0.0));
        assert!((0.0..60.0).contains(&t));
        masks[0].then_some((r, l))
    };
    (0..batch.rows()).map(row).collect()
}

#[test]
fn statistics_come_with_the_row_that_ends_and_survive_the_reset_of_others() {
    for mode in MODES {
        let asked = VecConfig { episode_statistics: true, max_episode_steps: Some(4), ..config(3, mode) };
        let mut envs = Serial::new(&source_of::<Count>(), asked).unwrap();
        let mut play = |actions: Option<[i64; 3]>, begin: [Begin; 3]| {
            match actions {
                Some(actions) => envs.send(&Slots::All, &[ColumnIn::scalars(&actions, &[3])]).unwrap(),
                None => envs.send_reset(&Slots::All, &begin, None).unwrap(),
            }
            let batch = envs.recv(Want::all()).unwrap().unwrap();
            statistics(&envs, &batch)
        };
        let none = [Begin::Keep; 3];
        assert_eq!(play(None, [Begin::Own; 3]), [None; 3]);
        assert_eq!(play(Some([0, 0, 0]), none), [None; 3]);
        // Rewards are 1, 2, 3, …: the second step ends the return at 3.
        assert_eq!(play(Some([0, 1, 0]), none), [None, Some((3.0, 2)), None]);
        // Slot 0 begins anew; the others' counts stay.
        assert_eq!(play(None, [Begin::Own, Begin::Own, Begin::Keep]), [None; 3]);
        assert_eq!(play(Some([1, 0, 0]), none), [Some((1.0, 1)), None, None]);
        if mode == AutoresetMode::Disabled {
            play(None, [Begin::Own, Begin::Keep, Begin::Keep]);
        }
        let rows = play(Some([0, 2, 0]), none);
        assert_eq!(rows, [None, Some((3.0, 2)), Some((10.0, 4))], "{mode:?}");
    }
}

#[test]
fn statistics_are_off_unless_asked_for() {
    let envs = count(1, AutoresetMode::NextStep);
    assert_eq!(envs.spec().info.leaves().len(), Told::space().unwrap().leaves().len());
}
